import { defineRule } from "../diagnostic.js";

export const DAMAGED_RECORD = defineRule({
  id: "damaged-record",
  severity: "error",
  page: {
    meaning:
      "`.gen-operator.json` is no JSON, or has entries that cannot be read. It records what the last generation wrote, and which dependents it had: objects of them may run.",
    remedy: "Restore the file from version control.",
  },
});

export const STALE = defineRule({
  id: "stale",
  severity: "error",
  page: {
    meaning: "A generated file is not what `generate` would write now.",
    remedy: "Run `gen-operator generate`, and commit the result.",
  },
});

export const UNKNOWN_FORGET = defineRule({
  id: "unknown-forget",
  severity: "error",
  page: {
    meaning: "`--forget` names a controller or a dependent that the last generation did not have.",
    remedy: "Use one of the names that the message lists: `CONTROLLER`, or `CONTROLLER/DEPENDENT`.",
  },
});
