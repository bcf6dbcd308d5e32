import type { Diagnostic } from "../../../diagnostic.js";
import { ruleOfController } from "../../build/resolved-project.js";

/**
 * Finds workflows, and settings of workflows, in controllers that are called for every event.
 *
 * Such a reconciler is also called when the primary is gone, when there is nothing that dependents could belong to. That it has no
 * cleanup is a matter of its type.
 */
export const checkAllEvents = ruleOfController(
  ({ spec: { document, controller, workflow }, dependents }): Diagnostic[] => {
    if (controller.onAllEvents !== true) return [];
    const fail = (message: string, path: string[], hint: string): Diagnostic => ({
      severity: "error",
      rule: "all-events",
      message,
      ...document.valueAt(["spec", ...path]),
      hint,
    });
    return [
      ...(dependents.length === 0
        ? []
        : [
            fail(
              "a controller with onAllEvents: true cannot have dependents",
              ["controller", "onAllEvents"],
              "remove onAllEvents, or watch the objects as eventSources and write them in the reconciler",
            ),
          ]),
      ...(workflow.invocation === "explicit"
        ? [
            fail(
              "a controller with onAllEvents: true has no workflow to invoke",
              ["workflow", "invocation"],
              "remove onAllEvents or invocation",
            ),
          ]
        : []),
    ];
  },
);
