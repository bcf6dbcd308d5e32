import type { ObjectKey } from "../base/kubernetes-object.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";

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
