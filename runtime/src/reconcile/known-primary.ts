import type { ObjectKey, ObjectMeta } from "../base/kubernetes-object.js";
import type { ReconcilePriority } from "../base/reconcile-reason.js";
import type { TimerItem, TimerNode } from "../queue/timer-queue.js";
import type { WorkItem } from "../queue/work-queue.js";
import type { Seen } from "./primary-filter.js";
import type { PrimaryState } from "./processor-state.js";
import type { RateLimiter } from "./rate-limiter.js";
import type { ReconcileRun } from "./reconcile-run.js";

/**
 * All that a controller keeps of a primary.
 *
 * It is its own place in the queue and on the clock, so that an event costs one look-up by key, and leaves nothing to collect but its
 * state.
 */
export class KnownPrimary implements WorkItem<KnownPrimary>, TimerItem<KnownPrimary> {
  readonly key: ObjectKey;
  /** The namespace; one for all that have none. */
  readonly group: string;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  /** The reconcile under way. */
  run: ReconcileRun | undefined = undefined;
  #seen: { -readonly [Field in keyof Seen]: Seen[Field] } | undefined = undefined;

  line: WorkItem<KnownPrimary>["line"] = undefined;
  previous: KnownPrimary | undefined = undefined;
  next: KnownPrimary | undefined = undefined;
  priority: ReconcilePriority = "background";
  isRunning = false;
  again: ReconcilePriority | undefined = undefined;

  // A number that is no small integer from the start: V8 then changes it in place.
  dueAt = Infinity;
  timerNode: TimerNode<KnownPrimary> | undefined = undefined;

  constructor(key: ObjectKey, state: PrimaryState) {
    this.key = key;
    this.group = key.slice(0, Math.max(0, key.indexOf("/")));
    this.state = state;
  }

  /** What the last reconcile saw. */
  get seen(): Seen | undefined {
    return this.#seen;
  }

  /** Remembers what a reconcile sees. */
  see({ uid, generation, deletionTimestamp }: ObjectMeta): void {
    const isDeleting = deletionTimestamp !== undefined;
    if (this.#seen === undefined) this.#seen = { uid, generation, isDeleting };
    else {
      this.#seen.uid = uid;
      this.#seen.generation = generation;
      this.#seen.isDeleting = isDeleting;
    }
  }

  /** Forgets what belongs to the object of this name before. */
  forgetObject(): void {
    this.#seen = undefined;
    this.limiter = undefined;
  }
}
