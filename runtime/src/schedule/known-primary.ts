import type { Clock } from "../base/clock.js";
import type { ObjectKey, ObjectMeta } from "../base/kubernetes-object.js";
import type { Seen } from "./primary-filter.js";
import type { PrimaryState } from "./processor-state.js";
import type { RateLimiter } from "./rate-limiter.js";
import type { ReconcileRun } from "./reconcile-run.js";

/** All that a controller keeps of a primary. */
export class KnownPrimary {
  readonly key: ObjectKey;
  /** The namespace; one for all that have none. */
  readonly group: string;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  /** The reconcile under way. */
  run: ReconcileRun | undefined = undefined;
  /** What the last reconcile saw; undefined before the first. */
  seen: Seen | undefined = undefined;
  #cancel: (() => void) | undefined = undefined;

  constructor(key: ObjectKey, state: PrimaryState) {
    this.key = key;
    this.group = key.slice(0, Math.max(0, key.indexOf("/")));
    this.state = state;
  }

  /** Calls `onDue` once after `delayMs`, instead of what was to be called before; with 0 at once, before this returns. */
  wakeAfter(delayMs: number, clock: Clock, onDue: () => void): void {
    this.cancelTimer();
    if (!(delayMs > 0)) return onDue();
    this.#cancel = clock.schedule(delayMs, () => {
      this.#cancel = undefined;
      onDue();
    });
  }

  /** Calls nothing any more. */
  cancelTimer(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  get hasTimer(): boolean {
    return this.#cancel !== undefined;
  }

  /** Remembers what a reconcile sees. */
  see({ uid, generation, deletionTimestamp }: ObjectMeta): void {
    this.seen = { uid, generation, isDeleting: deletionTimestamp !== undefined };
  }

  /** Forgets what belongs to the object of this name before. */
  forgetObject(): void {
    this.seen = undefined;
    this.limiter = undefined;
  }
}
