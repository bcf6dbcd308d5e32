import type { WorkflowDefinition } from "../workflow/workflow-definition.js";
import type { RateLimitOptions } from "./rate-limiter.js";
import type { Reconciler } from "./reconciler.js";
import type { RetryOptions } from "./retry.js";

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
  readonly retry?: RetryOptions;
  readonly rateLimit?: RateLimitOptions;
  /** Reconciles a primary again when nothing happened for this long; 10 hours unless given, 0 for never. */
  readonly maxReconciliationIntervalMs?: number;
  /** Whether changes that leave the generation of the primary as it is are passed over; true unless given. */
  readonly isGenerationAware?: boolean;
  /** How many primaries are reconciled at once; 50 unless given. */
  readonly maxConcurrentReconciles?: number;
}
