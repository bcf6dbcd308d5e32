import { keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import { PAUSED } from "../base/primary-link.js";
import type { LoopReporterOptions } from "./loop-reporter.js";

/** Tells people that somebody has paused a primary, or that it is reconciled again. */
export function reportPause(
  about: KubernetesObject,
  isPaused: boolean,
  { controller, logger, events }: Pick<LoopReporterOptions, "controller" | "logger" | "events">,
): void {
  const fields = { controller, primary: keyOf(about.metadata) };
  if (!isPaused) return logger.info(fields, "resumed: the primary is reconciled again");
  const message = `the annotation ${PAUSED} is "true": nothing is written until it is taken off, and finalizers stay`;
  logger.info(fields, `paused: ${message}`);
  events.record({ controller, about }, { reason: "Paused", action: "Pause", note: message });
}
