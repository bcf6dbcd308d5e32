import type { ObjectKey, ObjectMeta } from "../base/kubernetes-object.js";
import type { ReconcilePriority } from "../base/reconcile-reason.js";
import type { TimerItem, TimerNode } from "./timer-queue.js";
import type { WorkItem } from "./work-queue.js";
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
export class KnownPrimary implements WorkItem<KnownPrimary>, TimerItem<KnownPrimary>, Seen {
  readonly key: ObjectKey;
  /** The namespace; one for all that have none. */
  group: string;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  /** The reconcile under way. */
  run: ReconcileRun | undefined = undefined;

  #isSeen = false;
  uid: string | undefined = undefined;
  generation: number | undefined = undefined;
  isDeleting = false;

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

  /** What the last reconcile saw; undefined before the first. */
  get seen(): Seen | undefined {
    return this.#isSeen ? this : undefined;
  }

  /** Remembers what a reconcile sees. */
  see({ uid, generation, deletionTimestamp }: ObjectMeta): void {
    this.#isSeen = true;
    this.uid = uid;
    this.generation = generation;
    this.isDeleting = deletionTimestamp !== undefined;
  }

  /** Forgets what belongs to the object of this name before. */
  forgetObject(): void {
    this.#isSeen = false;
    this.limiter = undefined;
  }
}
