import { defineRule } from "../diagnostic.js";

export const DAMAGED_RECORD = defineRule({
  id: "damaged-record",
  severity: "error",
  page: {
    meaning:
      "`.gen-operator.json` is not valid JSON, or has invalid entries. It records what the last generation wrote, and its dependents, whose objects may exist in clusters.",
    remedy: "Restore the file from version control.",
  },
});

export const STALE = defineRule({
  id: "stale",
  severity: "error",
  page: {
    meaning: "A generated file differs from what `generate` would write.",
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
