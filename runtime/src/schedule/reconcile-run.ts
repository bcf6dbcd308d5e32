import { setMaxListeners } from "node:events";
import type { Clock } from "../base/clock.js";
import type { ObjectKey, ObjectMeta } from "../base/kubernetes-object.js";
import { createChildLogger, type Logger } from "../base/logger.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import {
  isDeletionNext,
  type PrimaryState,
  type ProcessorEffect,
  type ProcessorSettings,
  type Transition,
} from "./processor-state.js";
import type { PrimaryOutcome, ReconcileEvent, ReconcileScope } from "./reconcile-scope.js";

const SLOW_AFTER_MS = 30_000;
// How long a reconcile whose signal is aborted may take to end before its place is given to others.
const GRACE_MS = 30_000;

/** Where the reconciles of a controller run. */
export interface RunSurroundings {
  readonly controller: string;
  /** The kind of the primaries. */
  readonly kind: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly settings: ProcessorSettings;
  /** After how long the signal of a reconcile is aborted; 0 for never. */
  readonly timeoutMs: number;
  isImminent(key: ObjectKey): boolean;
  /** Called when a reconcile does not end although its signal is aborted. */
  onHung(key: ObjectKey): void;
}

/** What a reconcile starts from. */
export interface RunStart {
  readonly entry: DecodedResource;
  /** As it was before the reconcile started. */
  readonly state: PrimaryState;
  readonly startedAt: number;
}

/** One reconcile under way: what it is called with, its signal and its time. */
export class ReconcileRun implements ReconcileScope {
  readonly key: ObjectKey;
  readonly entry: DecodedResource;
  readonly retry: ReconcileScope["retry"];
  readonly isPrimaryDeleted: boolean;
  readonly isFinalStateUnknown: boolean;
  readonly reasons: readonly ReconcileReason[];
  readonly logger: Logger;
  readonly tasks: RunningTasks;
  readonly isNextReconcileImminent: () => boolean;
  /** Whether it was ended early, because its primary is being deleted. */
  isEnded = false;
  readonly #around: RunSurroundings;
  readonly #startedAt: number;
  readonly #abort = new AbortController();
  #cancel = () => {};

  constructor(key: ObjectKey, { entry, state, startedAt }: RunStart, around: RunSurroundings) {
    const { settings, controller, kind, clock, timeoutMs } = around;
    const { reasons, retry } = state;
    this.key = key;
    this.entry = entry;
    this.retry = { attempt: retry?.attempt ?? 0, isLastAttempt: settings.retry.isLastAttempt(retry) };
    this.isPrimaryDeleted = isDeletionNext(state, settings);
    this.isFinalStateUnknown = this.isPrimaryDeleted && state.isFinalStateUnknown;
    this.reasons = reasons;
    this.logger = createScopeLogger(around.logger, { controller, kind, primary: entry.object.metadata, reasons });
    this.tasks = new RunningTasks(this.logger, clock);
    this.isNextReconcileImminent = () => around.isImminent(key);
    this.#around = around;
    this.#startedAt = startedAt;
    // Every dependent of a large workflow may wait on it.
    setMaxListeners(0, this.signal);
    if (timeoutMs > 0) this.#cancel = clock.schedule(timeoutMs, () => this.#expire());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The object that is reconciled. */
  get uid(): string | undefined {
    return this.entry.object.metadata.uid;
  }

  /** Aborts the signal, because the operator stops. */
  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  /** Aborts the signal of a reconcile of a primary that is being deleted; its cleanup goes on. */
  end(): void {
    if (this.isPrimaryDeleted || this.entry.object.metadata.deletionTimestamp !== undefined) return;
    this.isEnded = true;
    this.#abort.abort(new Error("the primary is being deleted"));
  }

  /** Stops watching what the reconcile waits for. */
  close(): void {
    this.#cancel();
    this.tasks.close();
  }

  /** Returns what an observer is told when the reconcile ended with this transition. */
  eventOf(outcome: PrimaryOutcome, { state, effects }: Transition, now: number): ReconcileEvent {
    const { kind, wroteStatus, workflow, failure } = outcome;
    const retryAfterMs = failure === undefined ? undefined : retryAfterMsOf(effects);
    return {
      controller: this.#around.controller,
      primary: this.key,
      kind,
      reasons: this.reasons,
      wroteStatus,
      durationMs: now - this.#startedAt,
      ...(workflow === undefined ? {} : { workflow }),
      ...(failure === undefined ? {} : { error: failure.error }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(failure !== undefined && state?.isGivenUp === true ? { isGivenUp: true as const } : {}),
    };
  }

  #expire(): void {
    const { clock, timeoutMs, onHung } = this.#around;
    const seconds = Math.round(timeoutMs / 1000);
    this.logger.warn(
      { seconds },
      `the reconcile has taken ${seconds} s, the reconcileTimeoutMs; its signal is aborted`,
    );
    this.#abort.abort(new Error(`the reconcile took longer than ${seconds} s, its reconcileTimeoutMs`));
    this.#cancel = clock.schedule(GRACE_MS, () => {
      const message =
        "the reconcile goes on although its signal is aborted; other primaries take its place, " +
        "and this primary is not reconciled until it returns";
      this.logger.error({}, message);
      onHung(this.key);
    });
  }
}

/** The functions of the user that one reconcile is waiting for; says so when that takes long, because such a one may never return. */
export class RunningTasks {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #running = new Map<symbol, { readonly what: string; readonly startedAt: number }>();
  /** Absent until there is something to watch. */
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** Calls `task` and waits for it, under the name `what`. */
  readonly track = async <Result>(what: string, task: () => Result | Promise<Result>): Promise<Result> => {
    if (!this.#isClosed) this.#cancel ??= this.#watch();
    const id = Symbol(what);
    this.#running.set(id, { what, startedAt: this.#clock.now() });
    try {
      return await task();
    } finally {
      this.#running.delete(id);
    }
  };

  /** Ends the watch. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #watch(): () => void {
    return this.#clock.schedule(SLOW_AFTER_MS, () => {
      const now = this.#clock.now();
      for (const { what, startedAt } of this.#running.values()) {
        const seconds = Math.round((now - startedAt) / 1000);
        this.#logger.warn(
          { seconds },
          `${what} has not returned for ${seconds} s; this primary is not reconciled until it does`,
        );
      }
      this.#cancel = this.#watch();
    });
  }
}

/** Returns the outcome of a reconcile that broke its promise not to throw. */
export function failedOutcome(error: unknown): PrimaryOutcome {
  const nothing = { isFinalizerRemoved: false, wroteStatus: false, wroteResource: false };
  return { kind: "reconcile", ...nothing, failure: { error, isHandled: false } };
}

/** Returns a reason in words, as log lines show it: `primary updated`, `web home/page changed`, `retry 2`. */
export function describeReason(reason: ReconcileReason): string {
  switch (reason.kind) {
    case "primary":
      return `primary ${reason.change}`;
    case "secondary":
      return [reason.source, reason.type, reason.object, "changed"].filter((each) => each !== undefined).join(" ");
    case "retry":
      return `retry ${reason.attempt}`;
    default:
      return reason.kind;
  }
}

// A retry that something else made needless is none.
function retryAfterMsOf(effects: readonly ProcessorEffect[]): number | undefined {
  for (const effect of effects) {
    if (effect.kind === "release") return undefined;
    if (effect.kind === "submit") return 0;
    if (effect.kind === "schedule") return effect.delayMs;
  }
  return undefined;
}

// What the log lines of a reconcile say besides their message.
interface ScopeFields {
  readonly controller: string;
  readonly kind: string;
  readonly primary: ObjectMeta;
  readonly reasons: readonly ReconcileReason[];
}

// A logger whose lines say which reconcile they belong to, and why it runs.
function createScopeLogger(logger: Logger, { controller, kind, primary, reasons }: ScopeFields): Logger {
  const { namespace, name, uid, resourceVersion, generation } = primary;
  const object = { namespace, name, uid, resourceVersion, generation };
  return createChildLogger(logger, { controller, kind, ...object, reasons: reasons.map(describeReason) });
}
