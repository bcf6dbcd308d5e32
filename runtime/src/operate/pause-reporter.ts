import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { PAUSED } from "../base/primary-link.js";
import { writeEvent, type EventTarget } from "./kubernetes-event.js";

interface PauseReporterOptions {
  readonly controller: string;
  readonly client: EventTarget["client"];
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

  note(primary: KubernetesObject, isPaused: boolean): void {
    const key = keyOf(primary.metadata);
    if (this.#paused.has(key) === isPaused) return;
    const { controller, logger, client } = this.#options;
    const fields = { controller, primary: key };
    if (!isPaused) {
      this.#paused.delete(key);
      return logger.info(fields, "resumed: the primary is reconciled again");
    }
    this.#paused.add(key);
    const message = `the annotation ${PAUSED} is "true": nothing is written until it is taken off, and finalizers stay`;
    logger.info(fields, `paused: ${message}`);
    const content = { component: controller, about: primary, reason: "Paused", message, subject: "paused" };
    void writeEvent({ client, logger, fields }, content);
  }

  forget(primary: ObjectKey): void {
    this.#paused.delete(primary);
  }
}
