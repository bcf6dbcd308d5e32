import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";
import type { RunningTasks } from "./running-tasks.js";

/** What one reconcile of one primary is called with: what is known when it starts. */
export interface ReconcileScope {
  readonly key: ObjectKey;
  /** The latest state in the cache, or the last known one of a deleted primary. */
  readonly entry: DecodedResource;
  /** Which attempt this is: 0 unless the reconciles before failed. */
  readonly retry: { readonly attempt: number; readonly isLastAttempt: boolean };
  /** Whether the primary is gone; only a controller that reconciles on all events is told. */
  readonly isPrimaryDeleted: boolean;
  /** Whether the deletion was noticed later, so that the last state before it is not known. */
  readonly isFinalStateUnknown: boolean;
  readonly reasons: readonly ReconcileReason[];
  /** Tells whether the primary is reconciled again as soon as this reconcile ends. */
  isNextReconcileImminent(): boolean;
  /** Aborted when the operator stops or the reconcile is given up. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly tasks: RunningTasks;
}

/** What became of a reconcile. */
export interface PrimaryOutcome {
  readonly kind: "reconcile" | "cleanup";
  /** Asks for another reconcile after this time; 0 for at once. */
  readonly rescheduleAfterMs?: number;
  /** Whether nothing holds the primary any more on our account, so that it is about to go. */
  readonly isFinalizerRemoved: boolean;
  readonly wroteStatus: boolean;
  readonly wroteResource: boolean;
  /** What the workflow did; absent if it was not reached. */
  readonly workflow?: WorkflowResult;
  /** Why it failed; `isHandled` if the error status handler dealt with it, which makes it quiet while retries are left. */
  readonly failure?: { readonly error: unknown; readonly isHandled: boolean };
}

/** What an observer is told at the end of every reconcile. */
export interface ReconcileEvent {
  readonly controller: string;
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
  readonly kind: "reconcile" | "cleanup";
  /** Why it ran, as far as it is remembered. */
  readonly reasons: readonly ReconcileReason[];
  readonly durationMs: number;
  /** What the workflow did; absent if it was not reached. */
  readonly workflow?: WorkflowResult;
  /** Whether the status was written. */
  readonly wroteStatus: boolean;
  /** Absent after a success. */
  readonly error?: unknown;
  /** When the next attempt is made after a failure; absent if there is none. */
  readonly retryAfterMs?: number;
}

/** Called at the end of every reconcile; must not throw. */
export type ReconcileObserver = (event: ReconcileEvent) => void;
