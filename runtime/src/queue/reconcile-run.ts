// One reconcile: its request, its result and the event for observers; and the state that is kept of its primary.
import { setMaxListeners } from "node:events";
import type { ReconcileFacts, StepTiming } from "../base/activity.js";
import type { DecodedResource, KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { type Logger, withFields } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import { type ReconcilePriority, type ReconcileReason, describeReason } from "../base/reconcile-reason.js";
import { RunningTasks } from "../base/user-calls.js";
import { PostponableTimer } from "../base/wait.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";
import {
  type PrimaryState,
  type ReconcileOutcome,
  type Transition,
  isDeletionNext,
  isEnding,
  isImminent,
  retryAfterMsOf,
} from "./processor.js";
import type { RateLimiter, Schedule } from "./schedule-settings.js";

/** The request of one reconcile. */
export interface ReconcileScope {
  readonly key: ObjectKey;
  /** The state in the cache, or the last known state of a deleted primary. */
  readonly entry: DecodedResource;
  readonly reasons: readonly ReconcileReason[];
  /** `attempt` is 0 unless the reconciles before failed. */
  readonly retry: { readonly attempt: number; readonly isLastAttempt: boolean };
  /** The time in the queue. */
  readonly queuedMs: number;
  /** Whether the reconcile before found the primary paused. */
  readonly wasPaused: boolean;
  /** Whether the primary is deleted; always false without `onAllEvents`. */
  readonly isPrimaryDeleted: boolean;
  /** Whether the watch missed the deletion, so that `entry` may be outdated (client-go DeletedFinalStateUnknown). */
  readonly isFinalStateUnknown: boolean;
  /** Aborted when the operator stops, the reconcile takes too long, or its primary is marked for deletion or paused. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly tasks: RunningTasks;
  /** Reports whether the primary is reconciled again right after this reconcile. */
  isNextReconcileImminent(): boolean;
  /** Called for each completed step of a workflow. */
  onStep(step: StepTiming): void;
}

/** The result of a reconcile. */
export interface PrimaryOutcome extends ReconcileOutcome {
  readonly kind: "reconcile" | "cleanup";
  readonly wroteStatus: boolean;
  readonly wroteResource: boolean;
  /** What the workflow did; absent if it was not reached. */
  readonly workflow?: WorkflowResult;
}

/** Runs reconciles. When they run is up to the controller. */
export interface PrimaryRunner {
  /** Never rejects; a failure is part of the outcome. */
  run(scope: ReconcileScope): Promise<PrimaryOutcome>;
  /** Reports whether another client removed or overwrote what the controller writes to the primary: its finalizer, status or metadata. */
  isUndone(entry: DecodedResource): boolean;
  /** Returns a digest of the metadata that the controller reads (`inputs`); undefined if it reads none. */
  inputsOf(entry: DecodedResource): string | undefined;
  /** Forgets everything that is kept for a deleted primary. */
  release(key: ObjectKey): void;
}

/** The cache of primaries. */
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

/** One reconcile in progress. */
export class ReconcileRun implements ReconcileScope {
  readonly key: ObjectKey;
  readonly entry: DecodedResource;
  /** Whether it was ended early, because its primary is being deleted. */
  isEnded = false;
  readonly startedAt: number;
  readonly queuedMs: number;
  readonly wasPaused: boolean;
  /** When its worker is given to another reconcile, after its timeout; `Infinity` afterwards. */
  endOfSlot: number | undefined = undefined;
  readonly #primary: KnownPrimary;
  /** The state before it started. */
  readonly #state: PrimaryState;
  readonly #schedule: Schedule;
  readonly #steps: StepTiming[] = [];
  readonly #abort = new AbortController();
  readonly signal: AbortSignal = this.#abort.signal;
  readonly logger: Logger;
  readonly tasks: RunningTasks;

  constructor(primary: KnownPrimary, { entry, now }: { entry: DecodedResource; now: number }, schedule: Schedule) {
    const { controller, clock } = schedule;
    this.key = primary.key;
    this.entry = entry;
    this.startedAt = now;
    this.queuedMs = now - primary.queuedAt;
    this.wasPaused = primary.seen?.isPaused === true;
    this.#primary = primary;
    this.#state = primary.state;
    this.#schedule = schedule;
    const logger = (this.logger = createScopeLogger(schedule, this));
    this.tasks = new RunningTasks({ logger, clock, controller, primary: primary.key });
    // Every dependent of a large workflow may wait on it.
    setMaxListeners(0, this.signal);
  }

  get reasons(): readonly ReconcileReason[] {
    return this.#state.reasons;
  }

  get retry(): { readonly attempt: number; readonly isLastAttempt: boolean } {
    const { retry } = this.#state;
    return { attempt: retry?.attempt ?? 0, isLastAttempt: this.#schedule.settings.retry.isLastAttempt(retry) };
  }

  get isPrimaryDeleted(): boolean {
    return isDeletionNext(this.#state, this.#schedule.settings);
  }

  get isFinalStateUnknown(): boolean {
    return this.isPrimaryDeleted && this.#state.isFinalStateUnknown;
  }

  isNextReconcileImminent(): boolean {
    return isImminent(this.#primary.state, this.#schedule.settings);
  }

  onStep(step: StepTiming): void {
    this.#steps.push(step);
  }

  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  /** Aborts the signal of a reconcile whose primary is being deleted. A cleanup continues. */
  end(): void {
    if (this.entry.object.metadata.deletionTimestamp === undefined) this.#endFor("the primary is being deleted");
  }

  /** Aborts the signal of the reconcile or cleanup of a primary that was paused meanwhile. */
  pause(): void {
    if (!isPaused(this.entry.object.metadata)) this.#endFor("the primary is paused");
  }

  #endFor(reason: string): void {
    if (this.isPrimaryDeleted) return;
    this.isEnded = true;
    this.abort(new Error(reason));
  }

  /** Returns the event for observers after the transition that ended the reconcile. */
  eventOf(outcome: PrimaryOutcome, { state, effects }: Transition, now: number): ReconcileEvent {
    const { kind, wroteStatus, workflow, failure, rescheduleAfterMs } = outcome;
    const { startedAt, queuedMs } = this;
    const event: { -readonly [Field in keyof ReconcileEvent]: ReconcileEvent[Field] } = {
      controller: this.#schedule.controller,
      primary: this.key,
      kind,
      reasons: this.reasons,
      wroteStatus,
      durationMs: now - startedAt,
      ...{ queuedMs, startedAt, attempt: this.#state.retry?.attempt ?? 0, steps: this.#steps },
    };
    if (rescheduleAfterMs !== undefined) event.rescheduleAfterMs = rescheduleAfterMs;
    if (workflow !== undefined) event.workflow = workflow;
    if (failure === undefined) return event;
    event.error = failure.error;
    const retryAfterMs = retryAfterMsOf(effects);
    if (retryAfterMs !== undefined) event.retryAfterMs = retryAfterMs;
    if (state?.isGivenUp === true) event.isGivenUp = true;
    if (isEnding(failure.error)) event.isNamespaceTerminating = true;
    if (this.isEnded) event.isEnded = true;
    return event;
  }
}

// Adds the primary and the reasons of the reconcile to each line.
function createScopeLogger({ logger, controller, kind }: Schedule, { entry, reasons }: ReconcileRun): Logger {
  return withFields(logger, () => {
    const { namespace, name, uid, resourceVersion, generation } = entry.object.metadata;
    const object = { namespace, name, uid, resourceVersion, generation };
    return { controller, kind, ...object, reasons: reasons.map(describeReason) };
  });
}

interface PrimaryOwner {
  readonly schedule: Schedule;
  /** Called when the timer of a primary fires. */
  onDue(primary: KnownPrimary): void;
}

/** The state that a controller keeps of a primary. */
export class KnownPrimary {
  readonly key: ObjectKey;
  /** The namespace; empty for cluster-scoped primaries. */
  readonly group: string;
  waiting: ReconcilePriority | undefined = undefined;
  /** When the primary entered the queue. */
  queuedAt = 0;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  run: ReconcileRun | undefined = undefined;
  /** The error of the last reconcile; set while no quick retry is left. */
  lastError: string | undefined = undefined;
  /** Undefined before the first reconcile. */
  seen: Seen | undefined = undefined;
  readonly resyncAfterMs: number;
  /** Every reconcile postpones the resync. */
  readonly timer: PostponableTimer;
  readonly #onDue: () => void;

  constructor(key: ObjectKey, state: PrimaryState, owner: PrimaryOwner) {
    const { clock, random, settings } = owner.schedule;
    this.key = key;
    this.group = key.slice(0, Math.max(0, key.indexOf("/")));
    this.state = state;
    // Up to a tenth less, so that the primaries of one list are not resynced at once. Node.js keeps a list of timers for each duration, hence only a
    // hundred of them.
    this.resyncAfterMs = (settings.resyncAfterMs ?? 0) * (1 - Math.floor(random() * 100) / 1000);
    this.#onDue = () => owner.onDue(this);
    this.timer = new PostponableTimer(clock, this.#onDue);
  }

  /** Sets the timer in place of the one before. With 0, `onDue` is called before this returns. */
  wakeAfter(delayMs: number): void {
    if (delayMs > 0) return this.timer.set(delayMs);
    this.timer.cancel();
    this.#onDue();
  }
}

/** What the last reconcile saw of its primary. */
interface Seen {
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  readonly isDeleting: boolean;
  readonly isPaused: boolean;
  /** The digest of the inputs of the controller; undefined if it has none. */
  readonly inputs: string | undefined;
}

export function seenOf({ metadata }: KubernetesObject, inputs?: string): Seen {
  const { uid, generation, deletionTimestamp } = metadata;
  return { uid, generation, isDeleting: deletionTimestamp !== undefined, isPaused: isPaused(metadata), inputs };
}

/**
 * Reports whether a primary was edited (its spec or an input), replaced, paused, resumed or deleted since a reconcile saw it. Kinds without a
 * generation count as edited on every change.
 */
export function isEdit({ metadata }: KubernetesObject, seen: Seen | undefined, inputs?: string): boolean {
  const { uid, generation, deletionTimestamp } = metadata;
  if (seen === undefined || generation === undefined || seen.uid !== uid) return true;
  if (seen.isPaused !== isPaused(metadata) || seen.inputs !== inputs) return true;
  return generation > (seen.generation ?? 0) || (deletionTimestamp !== undefined && !seen.isDeleting);
}
