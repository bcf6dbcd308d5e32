import type { EventFilters } from "../cluster/event-filters.js";
import type { WorkflowDefinition } from "../workflow/workflow-definition.js";
import type { RateLimiterFactory, RateLimitOptions } from "./rate-limiter.js";
import type { Reconciler } from "./reconciler.js";
import type { Retry, RetryOptions } from "./retry.js";

/** Everything about one controller: its workflow, the user's reconciler and the settings; generated from the spec. */
export interface ControllerDefinition {
  /** Names the controller in logs, and is its field manager unless one is given. */
  readonly name: string;
  readonly workflow: WorkflowDefinition;
  readonly reconciler?: Reconciler<never, never, object>;
  /** The namespaces to watch; all of them unless given. */
  readonly namespaces?: readonly string[];
  /** Limits the controller to primaries with these labels. */
  readonly labelSelector?: string;
  readonly fieldManager?: string;
  /** The finalizer of the primaries; `<plural>.<group>/finalizer` unless given. */
  readonly finalizer?: string;
  readonly retry?: RetryOptions | Retry;
  readonly rateLimit?: RateLimitOptions | RateLimiterFactory;
  /** Reconciles a primary again when nothing happened for this long; 10 hours unless given, 0 for never. */
  readonly maxReconciliationIntervalMs?: number;
  /** Whether changes that leave the generation of the primary as it is are passed over; true unless given. */
  readonly isGenerationAware?: boolean;
  /**
   * Whether changes of a primary are passed over that bring nothing a reconcile acts on: neither a new generation nor a deletion nor a
   * lack of the finalizer; true unless given.
   */
  readonly hasDefaultFilters?: boolean;
  /** What changes of primaries have to pass as well; `onDelete` is not asked. */
  readonly filters?: EventFilters<never>;
  /**
   * Whether deletions are reconciled, too: with the last known state of the primary, and until that succeeds. The controller then has
   * neither finalizer nor cleanup.
   */
  readonly reconcilesOnAllEvents?: boolean;
  /** How many primaries are reconciled at once; 50 unless given. */
  readonly maxConcurrentReconciles?: number;
}
