import type { Clock } from "../base/clock.js";
import type { ObjectKey, ObjectMeta } from "../base/kubernetes-object.js";
import type { ReconcilePriority } from "../base/reconcile-reason.js";
import type { Seen } from "./primary-filter.js";
import type { PrimaryState } from "./processor-state.js";
import type { Queued } from "./work-queue.js";
import type { RateLimiter } from "./rate-limiter.js";
import type { ReconcileRun } from "./reconcile-run.js";

/** The clock and the callback of all timers of primaries. */
export interface PrimaryTiming {
  readonly clock: Clock;
  /** Returns a number from 0 to 1. */
  random(): number;
  readonly resyncAfterMs: number;
  onDue(primary: KnownPrimary): void;
}

/** All that a controller keeps of a primary. */
export class KnownPrimary implements Queued {
  readonly key: ObjectKey;
  /** The namespace; one for all that have none. */
  readonly group: string;
  waiting: ReconcilePriority | undefined = undefined;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  run: ReconcileRun | undefined = undefined;
  /** Why the last reconcile failed, while no quick retry is left. */
  lastError: string | undefined = undefined;
  /** What the last reconcile saw; undefined before the first. */
  seen: Seen | undefined = undefined;
  readonly resyncAfterMs: number;
  readonly #timing: PrimaryTiming;
  #dueAt = Infinity;
  /** When the pending timer of the clock rings: never after the primary is due. */
  #ringsAt = Infinity;
  #cancel: (() => void) | undefined = undefined;

  constructor(key: ObjectKey, state: PrimaryState, timing: PrimaryTiming) {
    this.key = key;
    this.group = key.slice(0, Math.max(0, key.indexOf("/")));
    this.state = state;
    // Up to a tenth less, so that primaries of one list do not come back at once. Node keeps a list of timers for each duration, so a
    // hundred durations have to do.
    this.resyncAfterMs = timing.resyncAfterMs * (1 - Math.floor(timing.random() * 100) / 1000);
    this.#timing = timing;
  }

  /** Sets the time at which the primary is due, and replaces the time before. With 0 `onDue` is called before this returns. */
  wakeAfter(delayMs: number, now = this.#timing.clock.now()): void {
    if (!(delayMs > 0)) {
      this.cancelTimer();
      return this.#timing.onDue(this);
    }
    this.#dueAt = now + delayMs;
    // Every reconcile puts the longest interval off. The earlier timer stays, and rings once too early.
    if (this.#ringsAt > this.#dueAt) this.#arm(delayMs);
  }

  cancelTimer(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#ringsAt = Infinity;
  }

  get hasTimer(): boolean {
    return this.#cancel !== undefined;
  }

  #arm(delayMs: number): void {
    this.#cancel?.();
    this.#ringsAt = this.#dueAt;
    this.#cancel = this.#timing.clock.schedule(delayMs, () => this.#ring());
  }

  #ring(): void {
    this.#cancel = undefined;
    this.#ringsAt = Infinity;
    const leftMs = this.#dueAt - this.#timing.clock.now();
    // A timer of Node may ring a part of a millisecond early.
    if (leftMs >= 1) this.#arm(leftMs);
    else this.#timing.onDue(this);
  }

  see({ uid, generation, deletionTimestamp }: ObjectMeta): void {
    const seen = (this.seen ??= { uid, generation, isDeleting: false });
    seen.uid = uid;
    seen.generation = generation;
    seen.isDeleting = deletionTimestamp !== undefined;
  }
}
