import type { EventSink } from "../base/activity.js";
import { keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { PAUSED } from "../base/primary-link.js";

interface PauseReporterOptions {
  readonly controller: string;
  readonly events: EventSink;
  readonly logger: Logger;
}

/** Tells people that somebody has paused a primary, or that it is reconciled again. */
export function reportPause(
  about: KubernetesObject,
  isPaused: boolean,
  { controller, logger, events }: PauseReporterOptions,
): void {
  const fields = { controller, primary: keyOf(about.metadata) };
  if (!isPaused) return logger.info(fields, "resumed: the primary is reconciled again");
  const message = `the annotation ${PAUSED} is "true": nothing is written until it is taken off, and finalizers stay`;
  logger.info(fields, `paused: ${message}`);
  events.record({ controller, about }, { reason: "Paused", action: "Pause", note: message });
}
