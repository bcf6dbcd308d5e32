import type { EventSink } from "../../base/activity.js";
import { isRefusal } from "../../base/errors.js";
import type { KubernetesObject } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import type { ReconcileEvent } from "../../schedule/reconcile-scope.js";

/** Records what people want to see of a reconcile at its primary: that an object was rejected, and that one was pruned. */
export function recordReconcile(
  events: EventSink,
  about: KubernetesObject | undefined,
  { controller, workflow, error }: ReconcileEvent,
): void {
  if (about === undefined) return;
  if (isRefusal(error))
    events.record({ controller, about }, { type: "Warning", reason: "Rejected", note: messageOf(error) });
  for (const [name, outcome] of Object.entries(workflow?.removed ?? {}))
    if (outcome.kind === "deleted")
      events.record({ controller, about }, { reason: "Pruned", action: "Delete", note: `${name}: ${outcome.because}` });
}
