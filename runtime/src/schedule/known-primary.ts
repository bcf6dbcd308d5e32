import { PostponableTimer, type Clock } from "../base/clock.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { ReconcilePriority } from "../base/reconcile-reason.js";
import type { Seen } from "./primary-filter.js";
import type { PrimaryState } from "./processor-state.js";
import type { Queued } from "./dispatch/work-queue.js";
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
  /** When the primary entered the queue. */
  queuedAt = 0;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  run: ReconcileRun | undefined = undefined;
  /** Why the last reconcile failed, while no quick retry is left. */
  lastError: string | undefined = undefined;
  /** What the last reconcile saw; undefined before the first. */
  seen: Seen | undefined = undefined;
  readonly resyncAfterMs: number;
  /** Rings when it is due. Every reconcile puts the longest interval off. */
  readonly timer: PostponableTimer;
  readonly #onDue: () => void;

  constructor(key: ObjectKey, state: PrimaryState, timing: PrimaryTiming) {
    this.key = key;
    this.group = key.slice(0, Math.max(0, key.indexOf("/")));
    this.state = state;
    // Up to a tenth less, so that primaries of one list do not come back at once. Node keeps a list of timers for each duration, so a
    // hundred durations have to do.
    this.resyncAfterMs = timing.resyncAfterMs * (1 - Math.floor(timing.random() * 100) / 1000);
    this.#onDue = () => timing.onDue(this);
    this.timer = new PostponableTimer(timing.clock, this.#onDue);
  }

  /** Sets the time at which the primary is due, and replaces the time before. With 0 `onDue` is called before this returns. */
  wakeAfter(delayMs: number): void {
    if (delayMs > 0) return this.timer.set(delayMs);
    this.timer.cancel();
    this.#onDue();
  }
}
