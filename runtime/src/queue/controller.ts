// The controller (JOSDK's EventProcessor): the state of each primary, reconciles in progress, and the mapping of events to reconciles.
import { setMaxListeners } from "node:events";
import {
  type ReconcileFacts,
  type ReconcileReason,
  type SecondaryCause,
  type StepTiming,
  type WaitingPrimary,
  describeReason,
} from "../base/activity.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  keyOf,
  uidOf,
} from "../base/kubernetes-object.js";
import { type Logger, messageOf, withFields } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import { RunningTasks, synchronous, userCalls } from "../base/user-calls.js";
import { type Clock, PostponableTimer } from "../base/wait.js";
import type { ResourceChange } from "../cache/resource-cache.js";
import type { EventFilters, ResourceView } from "../cache/resource-view.js";
import type { WorkflowResult } from "../workflow/run.js";
import {
  NEW_STATE,
  type PrimaryState,
  type ProcessorEffect,
  type ProcessorEvent,
  type ReconcileOutcome,
  type ReconcilePriority,
  type Transition,
  isDeletionNext,
  isEnding,
  isImminent,
  retryAfterMsOf,
  transitionOf,
} from "./processor.js";
import { type RateLimiter, type Schedule, type ScheduledController, scheduleOf } from "./schedule-settings.js";
import { Dispatcher, type Suspects } from "./work-queue.js";

/** The request of one reconcile. */
export interface ReconcileScope {
  readonly key: ObjectKey;
  /** The cached state, or the last known state of a deleted primary. */
  readonly entry: DecodedResource;
  readonly reasons: readonly ReconcileReason[];
  /** `attempt` is the number of retries that the retry policy has granted since the last success. */
  readonly retry: { readonly attempt: number; readonly isLastAttempt: boolean };
  /** The time spent in the queue. */
  readonly queuedMs: number;
  /** Whether the previous reconcile found the primary paused. */
  readonly wasPaused: boolean;
  /** Whether the primary has been deleted; always false without `onAllEvents`. */
  readonly isPrimaryDeleted: boolean;
  /** Whether the watch missed the deletion, so that `entry` may be stale (client-go's DeletedFinalStateUnknown). */
  readonly isFinalStateUnknown: boolean;
  /** Aborted when the operator stops, when the reconcile times out, or when the primary is paused or gets a deletionTimestamp. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly tasks: RunningTasks;
  /** Reports whether the primary is requeued immediately after this reconcile. */
  isNextReconcileImminent(): boolean;
  /** Called for each completed step of a workflow. */
  onStep(step: StepTiming): void;
}

/** The result of a reconcile. */
export interface PrimaryOutcome extends ReconcileOutcome {
  readonly kind: "reconcile" | "cleanup";
  readonly wroteStatus: boolean;
  readonly wroteResource: boolean;
  /** The result of the workflow; absent if it did not run. */
  readonly workflow?: WorkflowResult;
}

/** Executes reconciles; the controller decides when. */
export interface PrimaryRunner {
  /** Never rejects; a failure is part of the outcome. */
  run(scope: ReconcileScope): Promise<PrimaryOutcome>;
  /** Reports whether another client removed or overwrote what the controller wrote to the primary: its finalizer, status, or metadata. */
  isUndone(entry: DecodedResource): boolean;
  /** Returns a digest of the metadata that the controller reads (`inputs`); undefined if it reads none. */
  inputsOf(entry: DecodedResource): string | undefined;
  /** Drops all state of a deleted primary. */
  release(key: ObjectKey): void;
}

/** The cache of primaries. */
export type PrimaryLookup = Pick<ResourceView, "get" | "has">;

/** Passed to observers at the end of each reconcile. */
export interface ReconcileEvent
  extends Omit<ReconcileFacts, "reasons">, Pick<PrimaryOutcome, "kind" | "workflow" | "wroteStatus"> {
  /** The first reasons for the reconcile. */
  readonly reasons: readonly ReconcileReason[];
  readonly durationMs: number;
  /** When it started, by the clock of the controller (`performance.now()`). */
  readonly startedAt: number;
  /** The steps of all workflows, in the order of their completion. */
  readonly steps: readonly StepTiming[];
  /** The time until the requested next reconcile, in milliseconds; absent if none was requested. */
  readonly rescheduleAfterMs?: number;
  /** The error; absent after a success. */
  readonly error?: unknown;
  /** The time until the next attempt after a failure, in milliseconds; absent if there is none. */
  readonly retryAfterMs?: number;
  /** True if the quick retries are exhausted with this failure; otherwise absent. */
  readonly isGivenUp?: true;
  /**
   * True if it failed only because a namespace is terminating, so that no objects can be created in it; otherwise absent. Nothing has to be fixed
   * then.
   */
  readonly isNamespaceTerminating?: true;
  /** True if the controller aborted it because its primary is being deleted or was paused; otherwise absent. It runs again. */
  readonly isEnded?: true;
}

/** Called at the end of each reconcile. Must not throw. */
export type ReconcileObserver = (event: ReconcileEvent) => void;

/** One reconcile in progress. */
export class ReconcileRun implements ReconcileScope {
  readonly key: ObjectKey;
  readonly entry: DecodedResource;
  /** Whether it was aborted because its primary is being deleted or was paused. */
  isEnded = false;
  readonly startedAt: number;
  readonly queuedMs: number;
  readonly wasPaused: boolean;
  /** When its worker is freed after its timeout; `Infinity` once that has happened. */
  endOfSlot: number | undefined = undefined;
  readonly #primary: KnownPrimary;
  /** The state before the start. */
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
    // Every dependent of a large workflow may listen for the abort.
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

  /** Aborts the signal of the reconcile or cleanup of a primary that was paused in the meantime. */
  pause(): void {
    if (!isPaused(this.entry.object.metadata)) this.#endFor("the primary is paused");
  }

  #endFor(reason: string): void {
    if (this.isPrimaryDeleted) return;
    this.isEnded = true;
    this.abort(new Error(reason));
  }

  /** Returns the event for observers. The transition is the one that ended the reconcile. */
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

// Adds the primary and the reasons of the reconcile to each log line.
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

/** The controller's state of one primary. */
export class KnownPrimary {
  readonly key: ObjectKey;
  /** The namespace; empty if cluster-scoped. */
  readonly group: string;
  waiting: ReconcilePriority | undefined = undefined;
  /** When the primary was enqueued. */
  queuedAt = 0;
  state: PrimaryState;
  limiter: RateLimiter | undefined = undefined;
  run: ReconcileRun | undefined = undefined;
  /** The error of the last reconcile; set while the quick retries are exhausted. */
  lastError: string | undefined = undefined;
  /** Undefined before the first reconcile. */
  seen: Seen | undefined = undefined;
  readonly resyncAfterMs: number;
  /** A single timer: every reconcile postpones the resync. */
  readonly timer: PostponableTimer;
  readonly #onDue: () => void;

  constructor(key: ObjectKey, state: PrimaryState, owner: PrimaryOwner) {
    const { clock, random, settings } = owner.schedule;
    this.key = key;
    this.group = key.slice(0, Math.max(0, key.indexOf("/")));
    this.state = state;
    // Up to 10% less, so that the primaries of a list are not resynced at once. Only one hundred distinct values, because Node.js keeps a timer list
    // per duration.
    this.resyncAfterMs = (settings.resyncAfterMs ?? 0) * (1 - Math.floor(random() * 100) / 1000);
    this.#onDue = () => owner.onDue(this);
    this.timer = new PostponableTimer(clock, this.#onDue);
  }

  /** Replaces the timer. With 0, `onDue` is called before this function returns. */
  wakeAfter(delayMs: number): void {
    if (delayMs > 0) return this.timer.set(delayMs);
    this.timer.cancel();
    this.#onDue();
  }
}

/** The state of the primary that the last reconcile has seen. */
interface Seen {
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  readonly isDeleting: boolean;
  readonly isPaused: boolean;
  /** The digest of the controller's inputs; undefined if it has none. */
  readonly inputs: string | undefined;
}

function seenOf({ metadata }: KubernetesObject, inputs?: string): Seen {
  const { uid, generation, deletionTimestamp } = metadata;
  return { uid, generation, isDeleting: deletionTimestamp !== undefined, isPaused: isPaused(metadata), inputs };
}

/**
 * Reports whether a primary was edited (its spec or an input), replaced, paused, resumed, or deleted since a reconcile has seen it. For kinds without
 * a generation, every change counts as an edit.
 */
export function isEdit({ metadata }: KubernetesObject, seen: Seen | undefined, inputs?: string): boolean {
  const { uid, generation, deletionTimestamp } = metadata;
  if (seen === undefined || generation === undefined || seen.uid !== uid) return true;
  if (seen.isPaused !== isPaused(metadata) || seen.inputs !== inputs) return true;
  return generation > (seen.generation ?? 0) || (deletionTimestamp !== undefined && !seen.isDeleting);
}

/** Dependencies of a controller. Event sources fill the caches. */
interface ControllerDependencies {
  readonly primaries: PrimaryLookup;
  readonly runner: PrimaryRunner;
  readonly logger: Logger;
  /**
   * Returns why a primary must wait, for example for a watch that has not started; undefined if all of its possible secondaries are known. Default:
   * no primary waits
   */
  readonly unknownFor?: ((primary: KubernetesObject) => string | undefined) | undefined;
  /** Called when a primary has waited for a few seconds. */
  readonly onWaiting?: ((primary: KubernetesObject, reason: string) => void) | undefined;
  /** Called at the end of each reconcile, with the reconciled object. */
  readonly observer?: ((event: ReconcileEvent, object: KubernetesObject) => void) | undefined;
  readonly clock?: Clock | undefined;
  /** Suspects of all controllers. Default: none */
  readonly suspects?: Suspects | undefined;
  /** Returns a number from 0 to 1 for the jitter of intervals. Default: `Math.random` */
  readonly random?: () => number;
}

// Shorter waits are normal at startup, because watches start one after the other.
const REPORT_WAIT_MS = 2_000;

const NO_TRANSITION: Transition = { state: undefined, effects: [] };
// The outcome if the runner throws, which is a bug.
const BROKEN = { kind: "reconcile", isFinalizerRemoved: false, wroteStatus: false, wroteResource: false } as const;

/**
 * Turns events into reconciles: concurrently for different primaries, one at a time per primary (JOSDK's EventProcessor).
 *
 * The state machine in `processor.ts` makes the decisions; the controller applies its effects to the clock, the queue, and the reconciles in
 * progress. All public functions except `stop` are synchronous, so events cannot interleave.
 */
export class Controller {
  readonly schedule: Schedule;
  readonly dispatcher: Dispatcher;
  readonly #definition: ScheduledController;
  readonly #dependencies: ControllerDependencies;
  readonly #isRelevant: PrimaryFilter;
  readonly #primaries = new Map<ObjectKey, KnownPrimary>();
  /** Primaries taken from the queue while some of their secondaries were unknown. They are not in the queue. */
  readonly #waiting = new Map<KnownPrimary, { readonly reason: string; isReported: boolean }>();
  #cancelReport: (() => void) | undefined;
  #isStopped = false;

  constructor(definition: ScheduledController, dependencies: ControllerDependencies) {
    this.#definition = definition;
    this.#dependencies = dependencies;
    this.schedule = scheduleOf(definition, dependencies);
    this.dispatcher = new Dispatcher(this.schedule, this, dependencies.suspects);
    this.#isRelevant = createPrimaryFilter(definition, dependencies);
  }

  /** Starts to reconcile, including primaries with events from before the start. */
  start(): void {
    const { suspects, primaries } = this.#dependencies;
    suspects?.retain(this.#definition.name, (primary) => primaries.has(primary));
    this.dispatcher.start();
  }

  /** Starts no further reconcile until `resume` is called. Events are enqueued, and reconciles in progress continue. */
  pause(): void {
    this.dispatcher.pause();
  }

  /** Continues after `pause`. Drops primaries of namespaces that are no longer watched. */
  resume(): void {
    for (const primary of this.#primaries.values())
      if (!this.#dependencies.primaries.has(primary.key)) this.#apply(primary, { kind: "missed" });
    this.dispatcher.resume();
  }

  /** Requeues primaries whose secondaries are known now. */
  onKnown(): void {
    for (const primary of [...this.#waiting.keys()]) {
      const object = this.#entryOf(primary)?.object;
      if (object !== undefined && this.#dependencies.unknownFor?.(object) !== undefined) continue;
      this.#waiting.delete(primary);
      this.dispatcher.submit(primary, primary.state.priority);
    }
  }

  /** Primaries that wait because some of their secondaries are unknown, with the reasons. */
  get waiting(): readonly WaitingPrimary[] {
    return [...this.#waiting].map(([{ key }, { reason }]) => ({ primary: key, reason }));
  }

  /** Waits for the reconciles in progress, and aborts them at the deadline. Returns whether all of them ended before it. */
  stop(deadlineMs: number): Promise<boolean> {
    this.#isStopped = true;
    this.#cancelReport?.();
    this.#waiting.clear();
    for (const primary of this.#primaries.values()) {
      primary.timer.cancel();
      this.dispatcher.withdraw(primary);
    }
    return this.dispatcher.stop(deadlineMs);
  }

  /** Reports whether a reconcile of this object, identified by UID, is in progress. */
  isReconciling({ metadata }: KubernetesObject): boolean {
    const entry = this.#primaries.get(keyOf(metadata))?.run?.entry;
    return entry !== undefined && uidOf(entry) === metadata.uid;
  }

  /** Returns the digest of inputs that the last reconcile of a primary has seen; undefined if the controller has none. */
  seenInputsOf({ metadata }: KubernetesObject): string | undefined {
    return this.#primaries.get(keyOf(metadata))?.seen?.inputs;
  }

  onPrimaryChange(change: ResourceChange): void {
    if (this.#isStopped) return;
    const { kind, key, object, owned = [], isInitial } = change;
    const { uid, deletionTimestamp } = object.metadata;
    const reason: ReconcileReason = { kind: "primary", change: kind, isInitial };
    if (kind === "deleted") return this.#onDeletion(change, reason);
    const inputs = this.#dependencies.runner.inputsOf({ object, owned });
    const isNews = isEdit(object, this.#primaries.get(key)?.seen, inputs);
    if (!this.#isRelevant(change, isNews)) return;
    const isMarkedForDeletion = deletionTimestamp !== undefined;
    this.#tell(key, { kind: "changed", reason, uid, isMarkedForDeletion, isEdit: isNews });
    if (isMarkedForDeletion) this.#endRunOf(key);
    if (isPaused(object.metadata)) this.#primaries.get(key)?.run?.pause();
  }

  onSecondaryChange(keys: Iterable<ObjectKey>, cause: SecondaryCause & { readonly source: string }): void {
    if (this.#isStopped) return;
    const kind = "secondary";
    const reason: ReconcileReason = { kind, isInitial: false, ...cause };
    for (const key of keys) {
      const primary = this.#primaries.get(key);
      if (primary !== undefined) this.#apply(primary, { kind, reason, isKnown: true });
      else this.#tell(key, { kind, reason, isKnown: this.#isKnown(key) });
    }
  }

  /** Called when the timer of a primary fires. */
  onDue(primary: KnownPrimary): void {
    this.#apply(primary, { kind: "timer" });
  }

  /** Starts the reconcile of a primary, unless it has to wait for its rate limit or a watch. */
  begin(primary: KnownPrimary): void {
    const now = this.schedule.clock.now();
    const entry = this.#entryOf(primary);
    if (entry === undefined) return void this.#apply(primary, { kind: "missed" });
    const unknown = this.#dependencies.unknownFor?.(entry.object);
    if (unknown !== undefined) return this.#wait(primary, unknown);
    this.#waiting.delete(primary);
    const delayMs = (primary.limiter ??= this.schedule.createLimiter?.())?.take(now) ?? 0;
    if (delayMs > 0) return void this.#apply(primary, { kind: "limited", delayMs });
    const run = (primary.run = new ReconcileRun(primary, { entry, now }, this.schedule));
    this.#apply(primary, { kind: "started" });
    if (!run.isPrimaryDeleted) primary.seen = seenOf(entry.object, this.#dependencies.runner.inputsOf(entry));
    this.dispatcher.add();
    this.#dependencies.runner.run(run).then(
      (outcome) => this.#finish(primary, run, outcome),
      (error: unknown) => this.#finish(primary, run, { ...BROKEN, failure: { error, isHandled: false } }),
    );
  }

  /** The state of all known primaries. */
  get primaries(): Iterable<KnownPrimary> {
    return this.#primaries.values();
  }

  /** Returns the sizes of internal collections, to detect leaks. */
  counts(): { readonly states: number; readonly timers: number; readonly queued: number; readonly running: number } {
    const timers = [...this.#primaries.values()].filter(({ timer }) => timer.isSet).length;
    const { queued, running } = this.dispatcher.activity();
    return { states: this.#primaries.size, timers, queued, running };
  }

  #onDeletion(change: ResourceChange, reason: ReconcileReason): void {
    const { key, object, isFinalStateUnknown = false } = change;
    const isKnown = this.#isKnown(key);
    const facts = { kind: "deleted", reason, entry: { object }, isFinalStateUnknown, isKnown } as const;
    // A deletion that a filter rejects is not reconciled, but still drops the state of its primary.
    const isStarted = this.dispatcher.isStarted && this.#isRelevant(change, true);
    this.#tell(key, { ...facts, isStarted });
    this.#endRunOf(key);
  }

  // With onAllEvents, the deletion is reconciled after the reconcile in progress has ended on its own.
  #endRunOf(key: ObjectKey): void {
    if (!this.schedule.settings.onAllEvents) this.#primaries.get(key)?.run?.end();
  }

  // Whether the cache has an object of this name that passes the user's filters.
  #isKnown(key: ObjectKey): boolean {
    const { primaries } = this.#dependencies;
    const entry = this.#definition.filters === undefined ? undefined : primaries.get(key);
    if (entry === undefined) return primaries.has(key);
    return this.#isRelevant({ kind: "added", key, object: entry.object }, true);
  }

  /** Applies an event to a primary that may be new. The lookup has to happen here: a filter of the user may have caused another event. */
  #tell(key: ObjectKey, event: ProcessorEvent): void {
    const known = this.#primaries.get(key);
    if (known !== undefined) return void this.#apply(known, event);
    const { state, effects } = transitionOf(undefined, event, this.schedule.settings);
    if (state === undefined) return;
    const primary = new KnownPrimary(key, state, this);
    this.#primaries.set(key, primary);
    for (const effect of effects) this.#carryOut(primary, effect);
  }

  #apply(primary: KnownPrimary, event: ProcessorEvent): Transition {
    const transition = transitionOf(primary.state, event, this.schedule.settings);
    const { state, effects } = transition;
    if (state === undefined) this.#primaries.delete(primary.key);
    primary.state = state ?? NEW_STATE;
    for (const effect of effects) this.#carryOut(primary, effect);
    return transition;
  }

  #carryOut(primary: KnownPrimary, effect: ProcessorEffect): void {
    if (this.#isStopped && effect.kind !== "release" && effect.kind !== "log") return;
    switch (effect.kind) {
      case "submit":
        return this.dispatcher.submit(primary, primary.state.priority);
      case "schedule":
        return primary.wakeAfter(effect.delayMs);
      case "scheduleAt":
        return primary.wakeAfter(effect.at - this.schedule.clock.now());
      case "scheduleResync":
        return primary.wakeAfter(primary.resyncAfterMs);
      case "cancelTimer":
        return primary.timer.cancel();
      case "release":
        return this.#release(primary);
      case "log":
        return (primary.run ?? this.schedule).logger[effect.level](effect.fields, effect.message);
    }
  }

  #release(primary: KnownPrimary): void {
    // An object that is created later under the same name must start without these.
    primary.seen = undefined;
    primary.limiter = undefined;
    this.dispatcher.withdraw(primary);
    this.#waiting.delete(primary);
    primary.timer.cancel();
    primary.lastError = undefined;
    this.#dependencies.suspects?.delete(this.#definition.name, primary.key);
    this.#dependencies.runner.release(primary.key);
  }

  #entryOf({ key, state }: KnownPrimary): DecodedResource | undefined {
    return isDeletionNext(state, this.schedule.settings) ? state.lastKnown : this.#dependencies.primaries.get(key);
  }

  // Unknown secondaries must not be mistaken for absent ones. The state keeps the event until onKnown() requeues the primary.
  #wait(primary: KnownPrimary, reason: string): void {
    const isReported = this.#waiting.get(primary)?.isReported === true;
    this.#waiting.set(primary, { reason, isReported });
    if (!isReported) this.#cancelReport ??= this.schedule.clock.schedule(REPORT_WAIT_MS, () => this.#reportWaiting());
  }

  #reportWaiting(): void {
    this.#cancelReport = undefined;
    for (const [primary, waiting] of this.#waiting) {
      const object = this.#entryOf(primary)?.object;
      if (waiting.isReported || object === undefined) continue;
      waiting.isReported = true;
      this.#dependencies.onWaiting?.(object, waiting.reason);
    }
  }

  #finish(primary: KnownPrimary, run: ReconcileRun, outcome: PrimaryOutcome): void {
    const { key, entry, isEnded } = run;
    const uid = uidOf(entry);
    const known = this.#dependencies.primaries.get(key);
    const isReplaced = known !== undefined && uid !== undefined && uidOf(known) !== uid;
    const isKnown = (known !== undefined && !isReplaced) || this.#isKnown(key);
    const now = this.schedule.clock.now();
    const event = { kind: "finished", outcome, isEnded, now, entry, isReplaced, isKnown } as const;
    // After a stop, failures result from the aborted signal, so outcomes are ignored.
    const transition = this.dispatcher.isAborted ? NO_TRANSITION : this.#apply(primary, event);
    primary.run = undefined;
    if (outcome.failure === undefined) this.#dependencies.suspects?.delete(this.#definition.name, key, run.startedAt);
    primary.lastError = transition.state?.isGivenUp === true ? messageOf(outcome.failure?.error) : undefined;
    try {
      this.#dependencies.observer?.(run.eventOf(outcome, transition, now), entry.object);
    } catch (error) {
      this.#dependencies.logger.error({}, `the observer of reconciles failed: ${messageOf(error)}`);
    }
    this.dispatcher.delete(primary, run);
  }
}

type PrimaryChange = Pick<ResourceChange, "kind" | "key" | "object" | "old" | "owned">;

/** Reports whether a change of a primary causes a reconcile. `isNews`: the primary was edited since its last reconcile started. */
type PrimaryFilter = (change: PrimaryChange, isNews: boolean) => boolean;

/**
 * Creates the filter for a controller's primaries (JOSDK's ControllerEventSource and InternalEventFilters).
 *
 * A change is compared with the state that the last reconcile has seen, not with the previous state in the cache: the response to an own write may
 * have brought another client's change into the cache before its event arrives.
 */
function createPrimaryFilter(
  definition: ScheduledController,
  { runner, logger }: ControllerDependencies,
): PrimaryFilter {
  const { defaultFilters = true, generationAware = true, name: controller } = definition;
  const filters: EventFilters = (definition.filters as EventFilters | undefined) ?? {};
  const passes = ({ kind, object, old }: PrimaryChange): boolean => {
    if (filters.generic !== undefined && !synchronous(filters.generic(object))) return false;
    // A primary with a deletionTimestamp must be reconciled, or its finalizer would never be removed.
    const isMarked = object.metadata.deletionTimestamp !== undefined && old?.metadata.deletionTimestamp === undefined;
    if (isMarked || kind === "deleted") return true;
    if (kind === "added") return synchronous(filters.onAdd?.(object)) ?? true;
    return old === undefined || (synchronous(filters.onUpdate?.(object, old)) ?? true);
  };
  return (change, isNews) => {
    const { kind, key, object, owned = [] } = change;
    const isQuiet = kind === "updated" && defaultFilters && generationAware && !isNews;
    if (isQuiet && !runner.isUndone({ object, owned })) return false;
    try {
      if (definition.filters === undefined) return true;
      return userCalls.run({ what: "a filter of the controller", controller, primary: key }, () => passes(change));
    } catch (error) {
      // An unnecessary reconcile is harmless; a lost event is not.
      logger.error({ primary: key }, `a filter failed, and the event passes: ${messageOf(error)}`);
      return true;
    }
  };
}
