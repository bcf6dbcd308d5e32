import type { Clock } from "../base/clock.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import {
  isDeletionNext,
  retryInfoOf,
  type PrimaryState,
  type ProcessorEffect,
  type ProcessorSettings,
} from "./processor-state.js";
import type { PrimaryOutcome, ReconcileScope, ReconcileEvent } from "./reconcile-scope.js";
import { RunningTasks } from "./running-tasks.js";
import { createScopeLogger } from "./scope-logger.js";

/** Where the reconciles of a controller run. */
export interface RunSurroundings {
  readonly controller: string;
  /** The kind of the primaries. */
  readonly kind: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly settings: ProcessorSettings;
  isImminent(key: ObjectKey): boolean;
}

/**
 * One reconcile under way, as the one who does it sees it.
 *
 * What most reconciles of an idle cluster never use, such as the logger, is made when it is asked for.
 */
export class ReconcileRun implements ReconcileScope {
  readonly key: ObjectKey;
  readonly #startedAt: number;
  /** As it was before the reconcile started. */
  readonly #state: PrimaryState;
  readonly #around: RunSurroundings;
  #entry: DecodedResource | undefined;
  #logger: Logger | undefined;
  #tasks: RunningTasks | undefined;

  constructor(
    key: ObjectKey,
    { state, startedAt, around }: { state: PrimaryState; startedAt: number; around: RunSurroundings },
  ) {
    this.key = key;
    this.#state = state;
    this.#around = around;
    this.#startedAt = startedAt;
  }

  get entry(): DecodedResource {
    if (this.#entry === undefined) throw new Error(`the primary "${this.key}" is not read yet`);
    return this.#entry;
  }

  set entry(entry: DecodedResource) {
    this.#entry = entry;
  }

  /** The object that is reconciled; undefined while it is fetched. */
  get uid(): string | undefined {
    return this.#entry?.object.metadata.uid;
  }

  get retry(): ReconcileScope["retry"] {
    return retryInfoOf(this.#state, this.#around.settings);
  }

  get isPrimaryDeleted(): boolean {
    return isDeletionNext(this.#state, this.#around.settings);
  }

  get isFinalStateUnknown(): boolean {
    return this.isPrimaryDeleted && this.#state.isFinalStateUnknown;
  }

  get reasons(): ReconcileScope["reasons"] {
    return this.#state.reasons;
  }

  get signal(): AbortSignal {
    return this.#around.signal;
  }

  get isNextReconcileImminent(): () => boolean {
    return () => this.#around.isImminent(this.key);
  }

  get logger(): Logger {
    return (this.#logger ??= createScopeLogger(this.#around.logger, {
      controller: this.#around.controller,
      kind: this.#around.kind,
      primary: this.#entry?.object.metadata,
      reasons: this.#state.reasons,
    }));
  }

  get tasks(): RunningTasks {
    return (this.#tasks ??= new RunningTasks(this.logger, this.#around.clock));
  }

  /** Stops watching what the reconcile waits for. */
  close(): void {
    this.#tasks?.close();
  }

  /** Returns what an observer is told when the reconcile ended with these effects. */
  eventOf(outcome: PrimaryOutcome, effects: readonly ProcessorEffect[], now: number): ReconcileEvent {
    const { kind, wroteStatus, workflow, failure } = outcome;
    const { controller } = this.#around;
    const { key: primary, reasons } = this;
    const event: { -readonly [Field in keyof ReconcileEvent]: ReconcileEvent[Field] } = {
      controller,
      primary,
      kind,
      reasons,
      wroteStatus,
      durationMs: now - this.#startedAt,
    };
    if (workflow !== undefined) event.workflow = workflow;
    if (failure === undefined) return event;
    event.error = failure.error;
    const retryAfterMs = retryAfterMsOf(effects);
    if (retryAfterMs !== undefined) event.retryAfterMs = retryAfterMs;
    return event;
  }
}

/** Returns the outcome of a reconcile that was not reached, or that broke its promise not to throw. */
export function failedOutcome(error: unknown): PrimaryOutcome {
  const nothing = { isFinalizerRemoved: false, wroteStatus: false, wroteResource: false };
  return { kind: "reconcile", ...nothing, failure: { error, isHandled: false } };
}

// A retry that something else made needless is none.
function retryAfterMsOf(effects: readonly ProcessorEffect[]): number | undefined {
  for (const effect of effects) {
    if (effect.kind === "release") return undefined;
    if (effect.kind === "submit") return 0;
    if (effect.kind === "schedule" && effect.timer === "retry") return effect.delayMs;
  }
  return undefined;
}
