import type { EventFilters } from "../cache/resource-change.js";
import type { RateLimiterFactory, RateLimitOptions } from "./rate-limiter.js";
import type { Retry, RetryOptions } from "./retry.js";

/**
 * A part of the metadata of a primary, written as the downward API does: all labels, all annotations, one of them, or the owners.
 *
 * @example "metadata.labels['app.kubernetes.io/part-of']"
 */
export type PrimaryInput =
  | "metadata.labels"
  | "metadata.annotations"
  | "metadata.ownerReferences"
  | `metadata.${"labels" | "annotations"}['${string}']`;

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
   * The metadata of the primary that the functions of the controller read: a change of it causes a reconcile, as a new generation does. Keys that
   * the controller itself applied do not count, and `metadata.annotations` does not include
   * `kubectl.kubernetes.io/last-applied-configuration` and those of the runtime. Generated code lists what your code reads. Default: none, as in
   * JOSDK, whose filter passes new generations alone
   *
   * @example inputs: ["metadata.labels['example.com/tier']", "metadata.annotations"]
   */
  readonly inputs?: readonly PrimaryInput[];
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
