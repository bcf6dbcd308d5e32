import type { ObjectKey } from "../base/kubernetes-object.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";
import type { ReconcileFacts, StepTiming } from "../base/activity.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";
import type { ReconcileRun } from "./reconcile-run.js";

/** The arguments of one reconcile of one primary, as they are known when it starts. */
export type ReconcileScope = Pick<ReconcileRun, Known | "signal" | "logger" | "tasks" | "onStep">;

type Known =
  | ("key" | "entry" | "reasons" | "retry" | "queuedMs" | "wasPaused" | "isNextReconcileImminent")
  | ("isPrimaryDeleted" | "isFinalStateUnknown");

/** What became of a reconcile. */
export interface PrimaryOutcome {
  readonly kind: "reconcile" | "cleanup";
  /** Asks for another reconcile after this time; 0 for at once. */
  readonly rescheduleAfterMs?: number | undefined;
  /** Whether nothing holds the primary any more on our account, so that it is about to go. */
  readonly isFinalizerRemoved: boolean;
  /** Whether the status was written. */
  readonly wroteStatus: boolean;
  readonly wroteResource: boolean;
  /** What the workflow did; absent if it was not reached. */
  readonly workflow?: WorkflowResult;
  /** Why it failed; `isHandled` if the error status handler dealt with it, which makes it quiet while retries are left. */
  readonly failure?: { readonly error: unknown; readonly isHandled: boolean };
}

/** Does the work of a reconcile; knows nothing of when. */
export interface PrimaryRunner {
  /** A failure is part of the outcome. */
  run(scope: ReconcileScope): Promise<PrimaryOutcome>;
  /** Tells whether somebody took away what the controller itself writes to a primary: its finalizer, status or metadata. */
  isUndone(entry: DecodedResource): boolean;
  /** Returns a text that changes with the inputs of the controller; undefined if it has none. */
  inputsOf(entry: DecodedResource): string | undefined;
  /** Told that a primary is gone, so that what is kept for it can be forgotten. */
  release(key: ObjectKey): void;
}

/** The primaries as they are known now. */
export type PrimaryLookup = Pick<ResourceView, "get" | "has">;

/** What an observer is told at the end of every reconcile. */
export interface ReconcileEvent
  extends Omit<ReconcileFacts, "reasons">, Pick<PrimaryOutcome, "kind" | "workflow" | "wroteStatus"> {
  /** Why it ran, as far as it is remembered. */
  readonly reasons: readonly ReconcileReason[];
  readonly durationMs: number;
  /** When it began, by the clock of the controller (`performance.now()`). */
  readonly startedAt: number;
  /** The dependents in the order in which they were done with, those of all workflows. */
  readonly steps: readonly StepTiming[];
  /** After how long it is asked for again; absent if it is not. */
  readonly rescheduleAfterMs?: number;
  /** Absent after a success. */
  readonly error?: unknown;
  /** When the next attempt is made after a failure; absent if there is none. */
  readonly retryAfterMs?: number;
  /** Whether no quick retry is left after this failure; absent otherwise. */
  readonly isGivenUp?: true;
  /** Whether it failed only because objects cannot be created in a namespace that is being deleted: nothing is wrong. Absent otherwise. */
  readonly isNamespaceTerminating?: true;
  /** Whether it did not fail by itself: the deletion or the pause of its primary ended it, and it runs again. Absent otherwise. */
  readonly isEnded?: true;
}

/** Called at the end of every reconcile; must not throw. */
export type ReconcileObserver = (event: ReconcileEvent) => void;

/** A primary whose last reconcile failed without a quick retry left. */
export interface GivenUpPrimary {
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
  /** Reconciles that failed since the last success. */
  readonly failures: number;
  /** The message of the last failure. */
  readonly error: string;
}

/** The primaries that a controller has given up. */
export interface GivenUp {
  readonly count: number;
  /** The first ten of these primaries. */
  readonly primaries: readonly GivenUpPrimary[];
}
