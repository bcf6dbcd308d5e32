import type { EventSink } from "../../base/activity.js";
import { findError, type ApiError } from "../../base/errors.js";
import type { KubernetesObject } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import type { ReconcileEvent } from "../../schedule/reconcile-scope.js";

// The API server refused an object itself: bad request, too large, invalid.
const REFUSALS: readonly number[] = [400, 413, 422];

/** Records what people want to see of a reconcile at its primary: that an object was rejected, and that one was pruned. */
export function recordReconcile(
  events: EventSink,
  about: KubernetesObject | undefined,
  { controller, workflow, error }: ReconcileEvent,
): void {
  if (about === undefined) return;
  if (REFUSALS.includes(findError<ApiError>(error, "ApiError")?.code ?? 0))
    events.record({ controller, about }, { type: "Warning", reason: "Rejected", note: messageOf(error) });
  for (const [name, outcome] of Object.entries(workflow?.removed ?? {}))
    if (outcome.kind === "deleted")
      events.record({ controller, about }, { reason: "Pruned", action: "Delete", note: `${name}: ${outcome.because}` });
}
