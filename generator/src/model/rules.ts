import { defineRule } from "../rule.js";

export const UNKNOWN_FORGET = defineRule({
  id: "unknown-forget",
  severity: "error",
  page: {
    meaning: "`--forget` names a controller or a dependent that the last generation did not have.",
    remedy: "Use one of the names that the message lists: `CONTROLLER`, or `CONTROLLER/DEPENDENT`.",
  },
});
