import type { DependentArguments } from "../workflow/workflow-definition.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";

/** What a reconciler is called with: the run of the workflow came before. */
export interface ReconcileArguments<Primary, Secondary> extends DependentArguments<Primary, Secondary> {
  /** What the workflow did in this reconcile. */
  readonly workflow: WorkflowResult<keyof Secondary & string>;
}

/** What a reconciler wants done after it returns. */
export interface UpdateControl<Status> {
  /** The status to apply; absent to leave it as it is. */
  readonly status?: Status;
  /** Reconciles again after this time, unless an event comes first. */
  readonly rescheduleAfterMs?: number;
}

/** What a cleanup wants done after it returns. */
export interface DeleteControl {
  /** Whether the finalizer is removed, which lets the primary go; true unless said otherwise. */
  readonly removeFinalizer: boolean;
  /** Calls cleanup again after this time. */
  readonly rescheduleAfterMs?: number;
}

/** The part of an operator that the user writes for each primary; called with state, never with an event. */
export interface Reconciler<Primary, Secondary, Status> {
  /**
   * Runs after the workflow, for every change. It must be idempotent: it may run at any time and as often as the runtime likes,
   * but never twice at once for one primary. What it throws is retried.
   */
  reconcile(
    args: ReconcileArguments<Primary, Secondary>,
  ): UpdateControl<Status> | void | Promise<UpdateControl<Status> | void>;
  /** Runs when the primary is being deleted, after the workflow's own cleanup. Its presence gives every primary a finalizer. */
  cleanup?(args: ReconcileArguments<Primary, Secondary>): DeleteControl | void | Promise<DeleteControl | void>;
}

/** Asks for the status to be applied; nothing is sent if the primary already has it. */
export function updateStatus<Status>(
  status: Status,
  options: { rescheduleAfterMs?: number } = {},
): UpdateControl<Status> {
  return { status, ...options };
}

/** Asks for nothing but, perhaps, another reconcile later. */
export function noUpdate(options: { rescheduleAfterMs?: number } = {}): UpdateControl<never> {
  return options;
}

/** Keeps the finalizer, so that the primary stays and cleanup runs again. */
export function keepFinalizer(options: { rescheduleAfterMs?: number } = {}): DeleteControl {
  return { removeFinalizer: false, ...options };
}
