import type { Diagnostic } from "../../diagnostic.js";
import { ruleOfController } from "../resolved-project.js";

/**
 * Finds workflows in controllers that are called for every event.
 *
 * Such a reconciler is also called when the primary is gone, when there is nothing that dependents could belong to. That it has no
 * cleanup is a matter of its type.
 */
export const checkAllEvents = ruleOfController(({ spec: { document, controller }, dependents }): Diagnostic[] => {
  if (controller.onAllEvents !== true || dependents.length === 0) return [];
  return [
    {
      severity: "error",
      rule: "all-events",
      message: "a controller that is called for all events cannot have dependents",
      ...document.valueAt(["spec", "controller", "onAllEvents"]),
      hint: "remove onAllEvents, or watch the objects as eventSources and write them in the reconciler",
    },
  ];
});
