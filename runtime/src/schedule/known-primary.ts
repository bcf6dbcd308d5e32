import { PostponableTimer, type Clock } from "../base/clock.js";
import type { ObjectKey, ObjectMeta } from "../base/kubernetes-object.js";
import { isPaused } from "../base/primary-link.js";
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
  /** Since when it waits. */
  queuedAt = 0;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  run: ReconcileRun | undefined = undefined;
  /** Why the last reconcile failed, while no quick retry is left. */
  lastError: string | undefined = undefined;
  /** What the last reconcile saw; undefined before the first. */
  seen: Seen | undefined = undefined;
  readonly resyncAfterMs: number;
  readonly #timing: PrimaryTiming;
  // Every reconcile puts the longest interval off.
  readonly #timer: PostponableTimer;

  constructor(key: ObjectKey, state: PrimaryState, timing: PrimaryTiming) {
    this.key = key;
    this.group = key.slice(0, Math.max(0, key.indexOf("/")));
    this.state = state;
    // Up to a tenth less, so that primaries of one list do not come back at once. Node keeps a list of timers for each duration, so a
    // hundred durations have to do.
    this.resyncAfterMs = timing.resyncAfterMs * (1 - Math.floor(timing.random() * 100) / 1000);
    this.#timing = timing;
    this.#timer = new PostponableTimer(timing.clock, () => timing.onDue(this));
  }

  /** Sets the time at which the primary is due, and replaces the time before. With 0 `onDue` is called before this returns. */
  wakeAfter(delayMs: number, now?: number): void {
    if (delayMs > 0) return this.#timer.set(delayMs, now);
    this.cancelTimer();
    this.#timing.onDue(this);
  }

  cancelTimer(): void {
    this.#timer.cancel();
  }

  get hasTimer(): boolean {
    return this.#timer.isSet;
  }

  /** When its timer rings, by the clock of the controller. */
  get dueAt(): number | undefined {
    return this.#timer.dueAt;
  }

  see(metadata: ObjectMeta): void {
    const { uid, generation, deletionTimestamp } = metadata;
    const seen = (this.seen ??= { uid, generation, isDeleting: false, isPaused: false });
    seen.uid = uid;
    seen.generation = generation;
    seen.isDeleting = deletionTimestamp !== undefined;
    seen.isPaused = isPaused(metadata);
  }
}
