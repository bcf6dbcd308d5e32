import { setMaxListeners } from "node:events";
import type { Clock } from "../base/clock.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import { isWritten, type LineLevel, type Logger } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";
import type { StepTiming } from "../base/activity.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { retryAfterMsOf } from "./processor-failure.js";
import { isDeletionNext, type PrimaryState, type ProcessorSettings, type Transition } from "./processor-state.js";
import { describeReason, type PrimaryOutcome, type ReconcileEvent, type ReconcileScope } from "./reconcile-scope.js";

const SLOW_AFTER_MS = 30_000;
// How long a reconcile whose signal is aborted may take to end before its place is given to others.
const GRACE_MS = 30_000;

/** Where the reconciles of a controller run. */
export interface RunSurroundings {
  readonly controller: string;
  readonly kind: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly settings: ProcessorSettings;
  isImminent(key: ObjectKey): boolean;
  /** Whether anybody is told what became of a reconcile. */
  readonly isObserved: boolean;
}

/** What a reconcile starts from; `state` is as it was before. */
type RunStart = Pick<ReconcileRun, "entry" | "startedAt" | "queuedMs"> & { readonly state: PrimaryState };

/** One reconcile under way. */
export class ReconcileRun implements ReconcileScope {
  readonly key: ObjectKey;
  readonly entry: DecodedResource;
  /** Whether it was ended early, because its primary is being deleted. */
  isEnded = false;
  readonly startedAt: number;
  readonly queuedMs: number;
  readonly onStep: ReconcileScope["onStep"];
  /** When its place goes to others, if its time is up; `Infinity` once that is done. */
  endOfPlace: number | undefined = undefined;
  readonly #state: PrimaryState;
  readonly #around: RunSurroundings;
  readonly #steps: StepTiming[] = [];
  readonly #abort = new AbortController();
  #signal: AbortSignal | undefined;
  #logger: Logger | undefined;
  #tasks: RunningTasks | undefined;

  constructor(key: ObjectKey, { entry, state, startedAt, queuedMs }: RunStart, around: RunSurroundings) {
    this.key = key;
    this.entry = entry;
    this.startedAt = startedAt;
    this.queuedMs = queuedMs;
    this.onStep = around.isObserved ? (step) => void this.#steps.push(step) : undefined;
    this.#state = state;
    this.#around = around;
  }

  get reasons(): readonly ReconcileReason[] {
    return this.#state.reasons;
  }

  get retry(): ReconcileScope["retry"] {
    const { retry } = this.#state;
    return { attempt: retry?.attempt ?? 0, isLastAttempt: this.#around.settings.retry.isLastAttempt(retry) };
  }

  get isPrimaryDeleted(): boolean {
    return isDeletionNext(this.#state, this.#around.settings);
  }

  get isFinalStateUnknown(): boolean {
    return this.isPrimaryDeleted && this.#state.isFinalStateUnknown;
  }

  isNextReconcileImminent(): boolean {
    return this.#around.isImminent(this.key);
  }

  // Most reconciles log nothing, and wait for nobody.
  get logger(): Logger {
    return (this.#logger ??= createScopeLogger(this.#around, this));
  }

  get tasks(): RunningTasks {
    return (this.#tasks ??= new RunningTasks(this, this.#around.clock));
  }

  /** Says nothing more of functions that do not return. */
  close(): void {
    this.#tasks?.close();
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#signal = this.#abort.signal;
      // Every dependent of a large workflow may wait on it.
      setMaxListeners(0, this.#signal);
    }
    return this.#signal;
  }

  get uid(): string | undefined {
    return this.entry.object.metadata.uid;
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
    if (this.isEnded) event.isEnded = true;
    return event;
  }
}

/** How long a reconcile may take. */
export interface RunLimits {
  readonly clock: Clock;
  /** After how long the signal of a reconcile is aborted; 0 for never. */
  readonly timeoutMs: number;
  runs(): Iterable<ReconcileRun>;
  /** Called when a reconcile has lost its place, because it does not end although its signal is aborted. */
  onPlaceFreed(): void;
}

/** Watches over the reconciles under way. Each has a place until it ends, or until it goes on although its time is up. */
export class RunsUnderWay {
  readonly #limits: RunLimits;
  #hung = 0;
  #cancel: (() => void) | undefined;
  /** How many reconciles there are, with those that have no place any more. */
  size = 0;

  constructor(limits: RunLimits) {
    this.#limits = limits;
  }

  /** How many reconciles have a place. */
  get places(): number {
    return this.size - this.#hung;
  }

  add(): void {
    this.size++;
    if (this.#cancel === undefined && this.#limits.timeoutMs > 0) this.#checkAfter(this.#limits.timeoutMs);
  }

  delete(run: ReconcileRun): void {
    run.close();
    this.size--;
    if (run.endOfPlace === Infinity) this.#hung--;
    if (this.places === 0) this.#rest();
  }

  /** Aborts the signals of all reconciles, and watches none of them any more. */
  abort(reason: Error): void {
    this.#rest();
    for (const run of this.#limits.runs()) {
      run.abort(reason);
      run.close();
    }
  }

  #rest(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  // One timer for all, as they are many and short.
  #checkAfter(delayMs: number): void {
    this.#cancel = this.#limits.clock.schedule(delayMs, () => {
      const nextMs = Math.min(...[...this.#limits.runs()].map((run) => this.#check(run)));
      this.#cancel = undefined;
      if (this.places > 0) this.#checkAfter(Math.min(nextMs, this.#limits.timeoutMs));
    });
  }

  /** Returns after how long the reconcile is to be checked again. */
  #check(run: ReconcileRun): number {
    const { clock, timeoutMs } = this.#limits;
    const leftMs = (run.endOfPlace ?? run.startedAt + timeoutMs) - clock.now();
    // A timer of Node may ring a part of a millisecond early.
    if (leftMs >= 1) return leftMs;
    if (run.endOfPlace !== undefined) return this.#giveUp(run);
    const seconds = Math.round(timeoutMs / 1000);
    run.endOfPlace = clock.now() + GRACE_MS;
    run.logger.warn({ seconds }, `the reconcile has taken ${seconds} s, the reconcileTimeoutMs; its signal is aborted`);
    run.abort(new Error(`the reconcile took longer than ${seconds} s, its reconcileTimeoutMs`));
    return GRACE_MS;
  }

  #giveUp(run: ReconcileRun): number {
    const message =
      "the reconcile goes on although its signal is aborted; other primaries take its place, " +
      "and this primary is not reconciled until it returns";
    run.logger.error({}, message);
    run.endOfPlace = Infinity;
    this.#hung++;
    this.#limits.onPlaceFreed();
    return Infinity;
  }
}

/** The functions of the user that one reconcile is waiting for; says so when that takes long, because such a one may never return. */
export class RunningTasks {
  readonly #scope: { readonly logger: Logger };
  readonly #clock: Clock;
  /** Those that have not returned yet. */
  readonly running: { readonly what: string; readonly startedAt: number }[] = [];
  /** Absent until there is something to watch. */
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(scope: { readonly logger: Logger }, clock: Clock) {
    this.#scope = scope;
    this.#clock = clock;
  }

  /** Calls `task` and waits for it, under the name `what`. */
  async track<Result>(what: string, task: () => Result | Promise<Result>): Promise<Result> {
    if (!this.#isClosed) this.#cancel ??= this.#watch();
    const running = { what, startedAt: this.#clock.now() };
    this.running.push(running);
    try {
      return await task();
    } finally {
      this.running.splice(this.running.indexOf(running), 1);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #watch(): () => void {
    return this.#clock.schedule(SLOW_AFTER_MS, () => {
      const now = this.#clock.now();
      for (const { what, startedAt } of this.running) {
        const seconds = Math.round((now - startedAt) / 1000);
        const message = `${what} has not returned for ${seconds} s; this primary is not reconciled until it does`;
        this.#scope.logger.warn({ seconds }, message);
      }
      this.#cancel = this.#watch();
    });
  }
}

// A logger whose lines say which reconcile they belong to, and why it runs.
function createScopeLogger({ logger, controller, kind }: RunSurroundings, { entry, reasons }: ReconcileRun): Logger {
  const at = (level: LineLevel) => (more: object, message: string) => {
    const { namespace, name, uid, resourceVersion, generation } = entry.object.metadata;
    const object = { namespace, name, uid, resourceVersion, generation };
    logger[level]({ controller, kind, ...object, reasons: reasons.map(describeReason), ...more }, message);
  };
  const levels = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { ...levels, isLevelEnabled: (level) => isWritten(logger, level) };
}
