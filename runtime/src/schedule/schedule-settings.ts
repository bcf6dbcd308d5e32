import type { EventFilters } from "../cache/resource-change.js";
import type { RateLimiterFactory, RateLimitOptions } from "./rate-limiter.js";
import type { Retry, RetryOptions } from "./retry.js";

/** The settings that decide when primaries are reconciled; they are part of the definition of a controller. */
export interface ScheduleSettings {
  /** When a failed reconcile is tried again: options of the usual retry, or an own one. */
  readonly retry?: RetryOptions | Retry;
  /** How often one primary is reconciled at most. Default: as often as something happens */
  readonly rateLimit?: RateLimitOptions | RateLimiterFactory;
  /** Reconciles a primary again when nothing happened for this long; 0 for never. Default: 10 hours */
  readonly maxReconciliationIntervalMs?: number;
  /** Whether changes that leave the generation of the primary as it is are passed over. Default: true */
  readonly generationAware?: boolean;
  /**
   * Whether an update of a primary has to be a new generation, the begin of its deletion, or the loss of its finalizer, besides what
   * `filters` ask for. False: `filters` decide alone. Default: true
   */
  readonly defaultFilters?: boolean;
  /** Which events of primaries cause a reconcile. Deletions, and their marks, are only filtered by `generic`. Default: all */
  readonly filters?: Omit<EventFilters<never>, "onDelete">;
  /** Whether a deletion, or the loss of a label of `labelSelector`, calls `reconcile`, too; without finalizers, cleanup and dependents. Default: false */
  readonly onAllEvents?: boolean;
  /**
   * After how long the signal of a reconcile is aborted. A reconcile that goes on all the same loses its slot to other primaries; its own
   * primary waits for its end. Default: 30 minutes. 0 for never.
   */
  readonly reconcileTimeoutMs?: number;
  /** How many primaries are reconciled at once. Default: 50 */
  readonly maxConcurrentReconciles?: number;
}
