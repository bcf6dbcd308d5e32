import type { EventSink } from "../../base/activity.js";
import { findError, type ApiError } from "../../base/errors.js";
import { keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { messageOf, type Logger } from "../../base/logger.js";
import { PAUSED } from "../../base/primary-link.js";
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

interface Recording {
  readonly controller: string;
  readonly logger: Logger;
  readonly events: EventSink;
}

/** Says that a primary is not reconciled yet, because what may belong to it is not known, and why. */
export function recordWait(about: KubernetesObject, reason: string, { controller, logger, events }: Recording): void {
  const note = `not reconciled yet: what may belong to it is unknown, because a watch has not begun: ${reason}`;
  logger.info({ controller, primary: keyOf(about.metadata) }, note);
  events.record({ controller, about }, { type: "Warning", reason: "WaitingForWatch", action: "Watch", note });
}

/** Tells people that somebody has paused a primary, or that it is reconciled again. */
export function recordPause(
  about: KubernetesObject,
  isPaused: boolean,
  { controller, logger, events }: Recording,
): void {
  const fields = { controller, primary: keyOf(about.metadata) };
  if (!isPaused) return logger.info(fields, "resumed: the primary is reconciled again");
  const message = `the annotation ${PAUSED} is "true": nothing is written until it is taken off, and finalizers stay`;
  logger.info(fields, `paused: ${message}`);
  events.record({ controller, about }, { reason: "Paused", action: "Pause", note: message });
}
