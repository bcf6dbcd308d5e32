import type * as schedule from "../schedule/reconcile-scope.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";

/** What became of a reconcile. */
export type PrimaryOutcome = schedule.PrimaryOutcome<WorkflowResult>;

/** What an observer is told at the end of every reconcile. */
export type ReconcileEvent = schedule.ReconcileEvent<WorkflowResult>;

/** Called at the end of every reconcile; must not throw. */
export type ReconcileObserver = schedule.ReconcileObserver<WorkflowResult>;
