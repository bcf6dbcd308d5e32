import { setMaxListeners } from "node:events";
import type { Clock } from "../base/clock.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import { withFields, type Logger } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import { describeReason, type ReconcileReason } from "../base/reconcile-reason.js";
import type { StepTiming } from "../base/activity.js";
import { userCalls, type UserCall } from "../base/user-calls.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import type { KnownPrimary } from "./known-primary.js";
import { isEnding, retryAfterMsOf } from "./processor-failure.js";
import {
  isDeletionNext,
  isImminent,
  type PrimaryState,
  type ProcessorSettings,
  type Transition,
} from "./processor-state.js";
import type { PrimaryOutcome, ReconcileEvent } from "./reconcile-scope.js";

const SLOW_AFTER_MS = 30_000;

/** Where the reconciles of a controller run. */
export interface RunSurroundings {
  readonly controller: string;
  readonly kind: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly settings: ProcessorSettings;
}

/** One reconcile under way. */
export class ReconcileRun {
  readonly key: ObjectKey;
  /** The latest state in the cache, or the last known one of a deleted primary. */
  readonly entry: DecodedResource;
  /** Whether it was ended early, because its primary is being deleted. */
  isEnded = false;
  readonly startedAt: number;
  /** How long it had waited for its turn. */
  readonly queuedMs: number;
  /** Whether the reconcile before found the primary paused. */
  readonly wasPaused: boolean;
  /** When its slot goes to others, if its time is up; `Infinity` once that is done. */
  endOfSlot: number | undefined = undefined;
  readonly #primary: KnownPrimary;
  /** The state before it started. */
  readonly #state: PrimaryState;
  readonly #around: RunSurroundings;
  readonly #steps: StepTiming[] = [];
  readonly #abort = new AbortController();
  /** Aborted when the operator stops, the reconcile takes too long, or its primary is marked for deletion or paused. */
  readonly signal: AbortSignal = this.#abort.signal;
  readonly logger: Logger;
  readonly tasks: RunningTasks;

  constructor(primary: KnownPrimary, { entry, now }: { entry: DecodedResource; now: number }, around: RunSurroundings) {
    this.key = primary.key;
    this.entry = entry;
    this.startedAt = now;
    this.queuedMs = now - primary.queuedAt;
    this.wasPaused = primary.seen?.isPaused === true;
    this.#primary = primary;
    this.#state = primary.state;
    this.#around = around;
    this.logger = createScopeLogger(around, this);
    const { logger } = this;
    const { controller, clock } = around;
    this.tasks = new RunningTasks({ logger, clock, controller, primary: primary.key });
    // Every dependent of a large workflow may wait on it.
    setMaxListeners(0, this.signal);
  }

  get reasons(): readonly ReconcileReason[] {
    return this.#state.reasons;
  }

  /** Which attempt this is: 0 unless the reconciles before failed. */
  get retry(): { readonly attempt: number; readonly isLastAttempt: boolean } {
    const { retry } = this.#state;
    return { attempt: retry?.attempt ?? 0, isLastAttempt: this.#around.settings.retry.isLastAttempt(retry) };
  }

  /** Whether the primary is gone; only a controller that reconciles on all events is told. */
  get isPrimaryDeleted(): boolean {
    return isDeletionNext(this.#state, this.#around.settings);
  }

  /** Whether the deletion was noticed later, so that the last state before it is not known. */
  get isFinalStateUnknown(): boolean {
    return this.isPrimaryDeleted && this.#state.isFinalStateUnknown;
  }

  /** Tells whether the primary is reconciled again as soon as this reconcile ends. */
  isNextReconcileImminent(): boolean {
    return isImminent(this.#primary.state, this.#around.settings);
  }

  /** Told of every dependent that is done with. */
  onStep(step: StepTiming): void {
    this.#steps.push(step);
  }

  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  /** Aborts the signal of a reconcile of a primary that is being deleted; its cleanup goes on. */
  end(): void {
    if (this.entry.object.metadata.deletionTimestamp === undefined) this.#endFor("the primary is being deleted");
  }

  /** Aborts the signal of a reconcile, or a cleanup, of a primary that somebody has paused. */
  pause(): void {
    if (!isPaused(this.entry.object.metadata)) this.#endFor("the primary is paused");
  }

  #endFor(reason: string): void {
    if (this.isPrimaryDeleted) return;
    this.isEnded = true;
    this.abort(new Error(reason));
  }

  /** Returns what an observer is told when the reconcile ended with this transition. */
  eventOf(outcome: PrimaryOutcome, { state, effects }: Transition, now: number): ReconcileEvent {
    const { kind, wroteStatus, workflow, failure, rescheduleAfterMs } = outcome;
    const { startedAt, queuedMs } = this;
    const event: { -readonly [Field in keyof ReconcileEvent]: ReconcileEvent[Field] } = {
      controller: this.#around.controller,
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

interface RunningTasksOptions extends Pick<UserCall, "controller" | "primary"> {
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The functions of the user that one reconcile is waiting for; says so when that takes long, because such a one may never return. */
export class RunningTasks {
  readonly #options: RunningTasksOptions;
  /** Those that have not returned yet. */
  readonly running: (UserCall & { readonly startedAt: number })[] = [];
  /** Absent until there is something to watch. */
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: RunningTasksOptions) {
    this.#options = options;
  }

  /** Calls `task` and waits for it, under the name `what`. */
  async track<Result>(what: string, task: () => Result | Promise<Result>): Promise<Result> {
    if (!this.#isClosed) this.#cancel ??= this.#watch();
    const { controller, primary, clock } = this.#options;
    const running = { what, controller, primary, startedAt: clock.now() };
    this.running.push(running);
    try {
      return await userCalls.run(running, task);
    } finally {
      userCalls.settle();
      this.running.splice(this.running.indexOf(running), 1);
    }
  }

  /** Says nothing more of functions that do not return. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #watch(): () => void {
    const { clock, logger } = this.#options;
    return clock.schedule(SLOW_AFTER_MS, () => {
      const now = clock.now();
      for (const { what, startedAt } of this.running) {
        const seconds = Math.round((now - startedAt) / 1000);
        const message = `${what} has not returned for ${seconds} s; this primary is not reconciled until it does`;
        logger.warn({ seconds }, message);
      }
      this.#cancel = this.#watch();
    });
  }
}

// A logger whose lines say which reconcile they belong to, and why it runs.
function createScopeLogger({ logger, controller, kind }: RunSurroundings, { entry, reasons }: ReconcileRun): Logger {
  return withFields(logger, () => {
    const { namespace, name, uid, resourceVersion, generation } = entry.object.metadata;
    const object = { namespace, name, uid, resourceVersion, generation };
    return { controller, kind, ...object, reasons: reasons.map(describeReason) };
  });
}
