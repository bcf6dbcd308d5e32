import type { EventSink } from "../base/activity.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { PAUSED } from "../base/primary-link.js";

interface PauseReporterOptions {
  readonly controller: string;
  readonly events: EventSink;
  readonly logger: Logger;
}

/** Tells people of primaries that somebody has paused, once each, and counts them. */
export class PauseReporter {
  readonly #options: PauseReporterOptions;
  readonly #paused = new Set<ObjectKey>();

  constructor(options: PauseReporterOptions) {
    this.#options = options;
  }

  /** How many primaries are paused now. */
  get count(): number {
    return this.#paused.size;
  }

  get primaries(): Iterable<ObjectKey> {
    return this.#paused;
  }

  note(primary: KubernetesObject, isPaused: boolean): void {
    const key = keyOf(primary.metadata);
    if (this.#paused.has(key) === isPaused) return;
    const { controller, logger, events } = this.#options;
    const fields = { controller, primary: key };
    if (!isPaused) {
      this.#paused.delete(key);
      return logger.info(fields, "resumed: the primary is reconciled again");
    }
    this.#paused.add(key);
    const message = `the annotation ${PAUSED} is "true": nothing is written until it is taken off, and finalizers stay`;
    logger.info(fields, `paused: ${message}`);
    events.record({ controller, about: primary }, { reason: "Paused", action: "Pause", note: message });
  }

  forget(primary: ObjectKey): void {
    this.#paused.delete(primary);
  }
}
