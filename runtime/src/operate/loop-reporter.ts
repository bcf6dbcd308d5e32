import type { EventSink, LoopListener, LoopWrite, PostponedWrite, WrittenFor } from "../base/activity.js";
import { systemClock, type Clock } from "../base/clock.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";

/** An object that was written over and over, because somebody undoes it, or because its desired state never settles. */
export interface LoopEvent extends LoopWrite {
  readonly controller: string;
  /** Absent if the object is none of a dependent. */
  readonly dependent?: string;
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
}

/** Told of every write that belongs to a loop; must not throw. */
export type LoopObserver = (event: LoopEvent) => void;

/** What the reporter of a controller works with. */
export interface LoopReporterOptions {
  readonly controller: string;
  readonly events: EventSink;
  readonly logger: Logger;
  readonly observer?: LoopObserver | undefined;
  /** Reconciles a primary, because the pause of an object is over. */
  readonly reconcile: (primary: ObjectKey, at: { readonly source: string; readonly object: ObjectKey }) => void;
  readonly clock?: Clock;
  /** Returns what stands for the inputs that the last reconcile of a primary saw. Default: the controller has none */
  inputsOf?(primary: KubernetesObject): string | undefined;
}

// An object that is found as desired so long after its last write is in no loop.
const LOOK_AGAIN_AFTER_MS = 10_000;

/** Reports loops, once each, and reconciles their primaries again after the pauses. */
export class LoopReporter implements LoopListener {
  readonly #options: LoopReporterOptions;
  /** The writes of loops whose pause is not over, by primary and object. */
  readonly #waiting = new Map<string, { readonly postponed: PostponedWrite; readonly cancel: () => void }>();
  #isClosed = false;

  constructor(options: LoopReporterOptions) {
    this.#options = options;
  }

  /** The writes of loops whose pause is not over. */
  get postponed(): readonly PostponedWrite[] {
    return [...this.#waiting.values()].map(({ postponed }) => postponed);
  }

  /** Returns those for one primary. */
  postponedFor({ metadata }: KubernetesObject): readonly PostponedWrite[] {
    if (this.#waiting.size === 0) return [];
    const prefix = `${keyOf(metadata)} `;
    return [...this.#waiting].flatMap(([key, { postponed }]) => (key.startsWith(prefix) ? [postponed] : []));
  }

  inputOf(primary: KubernetesObject | undefined): string {
    const inputs = primary && this.#options.inputsOf?.(primary);
    return `${primary?.metadata.generation ?? 0}${inputs === undefined ? "" : ` ${inputs}`}`;
  }

  onLoop(written: LoopWrite, { primary, dependent }: WrittenFor): void {
    if (primary === undefined) return;
    const { controller, observer } = this.#options;
    const at = { controller, primary: keyOf(primary.metadata), ...(dependent !== undefined && { dependent }) };
    const event: LoopEvent = { ...at, ...written };
    if (written.isNew) this.#announce(primary, event);
    observer?.(event);
    // The loop is over if the object stays as it was written, which no event tells.
    const { isNew: _, pauseMs, ...loop } = written;
    this.#wait({ ...loop, managers: [], retryAfterMs: Math.max(pauseMs, LOOK_AGAIN_AFTER_MS) }, { primary, dependent });
  }

  onPostponed(postponed: PostponedWrite, writtenFor: WrittenFor): void {
    this.#wait(postponed, writtenFor);
  }

  #wait(postponed: PostponedWrite, { primary, dependent }: WrittenFor): void {
    if (primary === undefined || this.#isClosed) return;
    const { clock = systemClock, reconcile } = this.#options;
    const { kind, object, retryAfterMs } = postponed;
    const owner = keyOf(primary.metadata);
    const key = `${owner} ${kind} ${object}`;
    this.#waiting.get(key)?.cancel();
    const resume = () => {
      this.#waiting.delete(key);
      reconcile(owner, { source: dependent ?? "write loop", object });
    };
    this.#waiting.set(key, { postponed, cancel: clock.schedule(retryAfterMs, resume) });
  }

  /** Forgets what was postponed; nothing is reconciled any more because of it. */
  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }

  #announce(about: KubernetesObject, event: LoopEvent): void {
    const { logger, events } = this.#options;
    const { controller, dependent, primary, kind, object, paths, writes, loop } = event;
    const what = paths.length === 0 ? "the object itself" : paths.join(", ");
    const why =
      loop === "undone"
        ? `although nothing else was desired: somebody, another primary or an admission policy undoes ${what} each time`
        : `without a change of the primary: ${what} is desired otherwise each time`;
    const message = `${kind} ${object} was written ${writes} times ${why}; it is written less and less often from now on`;
    logger.warn({ controller, dependent, primary, object, paths, writes }, message);
    // Loops of several kinds are several Events.
    const action = `Write${kind.split(".")[0]}`;
    events.record({ controller, about }, { type: "Warning", reason: "WriteLoop", action, note: message });
  }
}
