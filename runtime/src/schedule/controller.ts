import type { ControllerActivity } from "../base/activity.js";
import { systemClock, turns, type Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import type { ReconcilePriority, ReconcileReason, SecondaryCause } from "../base/reconcile-reason.js";
import type { ResourceChange } from "../cache/resource-change.js";
import { detailsOf, type ControllerDetails } from "./details/controller-details.js";
import { KnownPrimary, type PrimaryTiming } from "./known-primary.js";
import { createPrimaryFilter, isEdit, type PrimaryFilter } from "./primary-filter.js";
import { transitionOf } from "./processor.js";
import {
  isDeletionNext,
  isImminent,
  NEW_STATE,
  type ProcessorEffect,
  type ProcessorEvent,
  type ProcessorSettings,
  type Transition,
} from "./processor-state.js";
import { rateLimiterFactoryOf, type RateLimiterFactory } from "./rate-limiter.js";
import { ReconcileRun, RunsUnderWay, type RunSurroundings } from "./reconcile-run.js";
import {
  type GivenUp,
  type PrimaryLookup,
  type PrimaryOutcome,
  type PrimaryRunner,
  type ReconcileEvent,
  type ReconcileObserver,
} from "./reconcile-scope.js";
import { guardedRetryOf } from "./retry.js";
import type { ScheduleSettings } from "./schedule-settings.js";
import { WorkQueue } from "./work-queue.js";

interface ControllerFacts extends ScheduleSettings {
  readonly name: string;
  readonly workflow: { readonly primary: { readonly kind: string } };
}

/** What a controller works with. Event sources fill the caches. */
export interface ControllerDependencies<Result> {
  readonly primaries: PrimaryLookup;
  readonly runner: PrimaryRunner<Result>;
  readonly logger: Logger;
  readonly observer?: ReconcileObserver<Result> | undefined;
  readonly clock?: Clock | undefined;
  /** Returns a number from 0 to 1 for the jitter of intervals. Default: `Math.random` */
  readonly random?: () => number;
}

/** A change of a primary. A watch event brought it, unless `isInitial` says that a list did. */
export type PrimaryChange = ResourceChange & { readonly isInitial?: boolean; readonly isFinalStateUnknown?: boolean };

const MAX_CONCURRENT_RECONCILES = 50;
const MAX_RECONCILIATION_INTERVAL_MS = 10 * 60 * 60 * 1000;
const RECONCILE_TIMEOUT_MS = 30 * 60 * 1000;
// Health is for people, and the first given-up primaries say enough.
const MAX_GIVEN_UP = 10;

// Constants save one object per event.
const TIMER: ProcessorEvent = { kind: "timer" };
const STARTED: ProcessorEvent = { kind: "started" };
const MISSED: ProcessorEvent = { kind: "missed" };
const reasonsFor = (change: ResourceChange["kind"]) => ({
  initial: { kind: "primary", change, isInitial: true } as const,
  later: { kind: "primary", change, isInitial: false } as const,
});
const REASONS = { added: reasonsFor("added"), updated: reasonsFor("updated"), deleted: reasonsFor("deleted") };
const NO_TRANSITION: Transition = { state: undefined, effects: [] };
// A runner that broke its promise not to throw.
const BROKEN = { kind: "reconcile", isFinalizerRemoved: false, wroteStatus: false, wroteResource: false } as const;

/**
 * Decides when primaries are reconciled: each one at a time, many at once, until each is as desired.
 *
 * `processor.ts` takes the decisions. The controller holds the clock, the queue and the running reconciles. Every public function
 * but `stop` runs to its end in one turn of the event loop, so no event comes in between. `Result` is the result of a workflow.
 */
export class Controller<Result = unknown> {
  readonly #definition: ControllerFacts;
  readonly #dependencies: ControllerDependencies<Result>;
  readonly #clock: Clock;
  readonly #settings: ProcessorSettings;
  readonly #surroundings: RunSurroundings;
  readonly #timing: PrimaryTiming;
  readonly #isRelevant: PrimaryFilter;
  readonly #createLimiter: RateLimiterFactory | undefined;
  #maxRunning: number;
  readonly #queue = new WorkQueue<KnownPrimary>();
  readonly #primaries = new Map<ObjectKey, KnownPrimary>();
  readonly #runs: RunsUnderWay;
  #submissions = 0;
  #isStarted = false;
  #isPaused = false;
  #isStopped = false;
  #isAborted = false;
  #isWaking = false;
  #onIdle = () => {};
  #idle: Promise<void> | undefined;

  constructor(definition: ControllerFacts, dependencies: ControllerDependencies<Result>) {
    const { maxReconciliationIntervalMs: longest = MAX_RECONCILIATION_INTERVAL_MS } = definition;
    const { clock = systemClock, random = Math.random, runner, logger } = dependencies;
    this.#definition = definition;
    this.#dependencies = dependencies;
    this.#clock = clock;
    this.#timing = { clock, random, resyncAfterMs: longest, onDue: (primary) => void this.#apply(primary, TIMER) };
    this.#settings = {
      retry: guardedRetryOf(definition.retry, { logger, random }),
      resyncAfterMs: longest > 0 ? longest : undefined,
      onAllEvents: definition.onAllEvents ?? false,
    };
    this.#surroundings = {
      controller: definition.name,
      kind: definition.workflow.primary.kind,
      logger,
      clock,
      settings: this.#settings,
      isImminent: (key) => this.isImminent(key),
      isObserved: dependencies.observer !== undefined,
    };
    const { reconcileTimeoutMs: timeoutMs = RECONCILE_TIMEOUT_MS } = definition;
    this.#runs = new RunsUnderWay({
      clock,
      timeoutMs,
      runs: () => [...this.#primaries.values()].flatMap(({ run }) => run ?? []),
      onPlaceFreed: () => this.#fill(),
    });
    const lacksFinalizer = (primary: KubernetesObject) => runner.lacksFinalizer(primary);
    this.#isRelevant = createPrimaryFilter({ ...definition, lacksFinalizer, logger });
    this.#createLimiter = rateLimiterFactoryOf(definition.rateLimit, logger);
    this.#maxRunning = definition.maxConcurrentReconciles ?? MAX_CONCURRENT_RECONCILES;
  }

  /** Changes how many reconciles may run at once; those under way go on. */
  setMaxConcurrentReconciles(count = MAX_CONCURRENT_RECONCILES): void {
    this.#maxRunning = count;
    this.#fill();
  }

  /** Starts to reconcile, beginning with the primaries of all events so far. */
  start(): void {
    this.#isStarted = true;
    this.#wakeUp();
  }

  /** Starts no further reconcile until `resume`. Events are kept, and running reconciles go on. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Goes on after `pause`. Primaries that have left the cache with their namespace are forgotten. */
  resume(): void {
    this.#isPaused = false;
    for (const primary of this.#primaries.values())
      if (!this.#dependencies.primaries.has(primary.key)) this.#apply(primary, MISSED);
    this.#wakeUp();
  }

  /** Starts nothing more, waits for what runs, and then aborts its signals; tells whether all of it ended in time. */
  async stop(deadlineMs: number): Promise<boolean> {
    this.#isStopped = true;
    for (const primary of this.#primaries.values()) {
      primary.cancelTimer();
      this.#queue.delete(primary);
    }
    const idle = (this.#idle = new Promise<void>((resolve) => (this.#onIdle = resolve)));
    if (this.#runs.size === 0) this.#onIdle();
    const finished = idle.then(() => true);
    let cancel = () => {};
    const late = new Promise<false>((resolve) => (cancel = this.#clock.schedule(deadlineMs, () => resolve(false))));
    const isFinished = await Promise.race([finished, late]);
    cancel();
    this.#isAborted = true;
    this.#runs.abort(new Error("the operator stops"));
    return isFinished;
  }

  /** Resolves when the last reconcile has ended after a stop, be it after the deadline. Resolves at once without a stop. */
  async whenIdle(): Promise<void> {
    await this.#idle;
  }

  onPrimaryChange(change: PrimaryChange): void {
    if (this.#isStopped) return;
    const { kind, key, object, old, isInitial = false } = change;
    const { uid, deletionTimestamp } = object.metadata;
    const reason = REASONS[kind][isInitial ? "initial" : "later"];
    if (kind === "deleted") return this.#onDeletion(change, reason);
    // The deletion of the object before was missed.
    if (kind === "updated" && old !== undefined && old.metadata.uid !== uid) {
      const missed = { ...change, kind: "deleted" as const, object: old, isFinalStateUnknown: true };
      this.#onDeletion(missed, REASONS.deleted[isInitial ? "initial" : "later"]);
      return this.onPrimaryChange({ ...change, kind: "added" });
    }
    const isNews = isEdit(object, this.#primaries.get(key)?.seen);
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

  /** Tells whether a primary has an event that no reconcile has seen yet. */
  isImminent(key: ObjectKey): boolean {
    const primary = this.#primaries.get(key);
    return primary !== undefined && isImminent(primary.state, this.#settings);
  }

  get givenUp(): GivenUp {
    const all = [...this.#primaries.values()].flatMap(({ key, state, lastError }) =>
      lastError === undefined ? [] : [{ primary: key, failures: state.failures, error: lastError }],
    );
    return { count: all.length, primaries: all.slice(0, MAX_GIVEN_UP) };
  }

  /** Counts the objects that the controller keeps, to find leaks. */
  counts(): { readonly states: number; readonly timers: number; readonly queued: number; readonly running: number } {
    const timers = [...this.#primaries.values()].filter(({ hasTimer }) => hasTimer).length;
    return { states: this.#primaries.size, timers, queued: this.#queue.size, running: this.#runs.size };
  }

  /** What it does now, and how much it was given to do. */
  activity(): ControllerActivity {
    const now = this.#clock.now();
    const ages = [...this.#primaries.values()].flatMap(({ run }) => (run === undefined ? [] : now - run.startedAt));
    return {
      ...{ submissions: this.#submissions, queued: this.#queue.size, running: this.#runs.size },
      ...{ maxRunning: this.#maxRunning, unfinishedMs: ages.reduce((sum, age) => sum + age, 0) },
      longestMs: Math.max(0, ...ages),
    };
  }

  /** What it knows of its primaries, for people. */
  details(): ControllerDetails {
    return detailsOf(this.#primaries.values(), this.#clock.now());
  }

  #onDeletion(change: PrimaryChange, reason: ReconcileReason): void {
    const { key, object, isFinalStateUnknown = false } = change;
    const isKnown = this.#isKnown(key);
    const facts = { kind: "deleted", reason, entry: { object }, isFinalStateUnknown, isKnown } as const;
    // A deletion that a filter rejects is not reconciled, but the state of its primary goes.
    const isStarted = this.#isStarted && this.#isRelevant(change, true);
    this.#tell(key, { ...facts, isStarted });
    this.#endRunOf(key);
  }

  // A controller on all events sees every reconcile to its end before that of the deletion.
  #endRunOf(key: ObjectKey): void {
    if (!this.#settings.onAllEvents) this.#primaries.get(key)?.run?.end();
  }

  // Whether the cache has an object of this name that passes the user's filters.
  #isKnown(key: ObjectKey): boolean {
    const { primaries } = this.#dependencies;
    const entry = this.#definition.filters === undefined ? undefined : primaries.get(key);
    if (entry === undefined) return primaries.has(key);
    return this.#isRelevant({ kind: "added", key, object: entry.object }, true);
  }

  /** Passes an event to the processor. The look-up comes late: a filter of the user may have sent an event meanwhile. */
  #tell(key: ObjectKey, event: ProcessorEvent): void {
    const known = this.#primaries.get(key);
    if (known !== undefined) return void this.#apply(known, event);
    const { state, effects } = transitionOf(undefined, event, this.#settings);
    if (state === undefined) return;
    const primary = new KnownPrimary(key, state, this.#timing);
    this.#primaries.set(key, primary);
    for (const effect of effects) this.#carryOut(primary, effect);
  }

  /** `now` is the time, if it has just been read. */
  #apply(primary: KnownPrimary, event: ProcessorEvent, now?: number): Transition {
    const transition = transitionOf(primary.state, event, this.#settings);
    const { state, effects } = transition;
    if (state === undefined) this.#primaries.delete(primary.key);
    primary.state = state ?? NEW_STATE;
    for (const effect of effects) this.#carryOut(primary, effect, now);
    return transition;
  }

  #carryOut(primary: KnownPrimary, effect: ProcessorEffect, now?: number): void {
    switch (effect.kind) {
      case "submit":
        if (!this.#isStopped) this.#enqueue(primary, effect.priority);
        if (this.#isStarted && !this.#isPaused) this.#wakeUp();
        return;
      case "schedule":
        return this.#wake(primary, effect.delayMs, now);
      case "scheduleAt":
        return this.#wake(primary, effect.at - this.#clock.now());
      case "scheduleResync":
        return this.#wake(primary, primary.resyncAfterMs, now);
      case "cancelTimer":
        return primary.cancelTimer();
      case "release":
        return this.#release(primary);
      case "log":
        return (primary.run ?? this.#surroundings).logger[effect.level](effect.fields, effect.message);
    }
  }

  #enqueue(primary: KnownPrimary, priority: ReconcilePriority): void {
    if (primary.waiting === undefined) {
      primary.queuedAt = this.#clock.now();
      this.#submissions++;
    }
    this.#queue.add(primary, priority);
  }

  #wake(primary: KnownPrimary, delayMs: number, now?: number): void {
    if (!this.#isStopped) primary.wakeAfter(delayMs, now);
  }

  #release(primary: KnownPrimary): void {
    // What a successor with this name gets anew.
    primary.seen = undefined;
    primary.limiter = undefined;
    this.#queue.delete(primary);
    primary.cancelTimer();
    primary.lastError = undefined;
    this.#dependencies.runner.release?.(primary.key);
  }

  // No reconcile starts inside the call that brings an event, so a batch of events is taken as a whole.
  #wakeUp(pause = Promise.resolve()): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    void pause.then(() => {
      this.#isWaking = false;
      this.#fill();
    });
  }

  #fill(): void {
    while (this.#isStarted && !this.#isPaused && !this.#isWaking && this.#runs.places < this.#maxRunning) {
      // An empty queue needs no turn.
      if (this.#queue.size === 0) return;
      // Thousands of reconciles without a write never wait, and would starve watches, the lease and probes.
      const pause = turns.pause();
      if (pause !== undefined) return this.#wakeUp(pause);
      const primary = this.#queue.take();
      if (primary === undefined) return;
      this.#begin(primary, this.#clock.now());
    }
  }

  #begin(primary: KnownPrimary, now: number): void {
    const { key, state } = primary;
    const entry = isDeletionNext(state, this.#settings) ? state.lastKnown : this.#dependencies.primaries.get(key);
    if (entry === undefined) return void this.#apply(primary, MISSED);
    const delayMs = (primary.limiter ??= this.#createLimiter?.())?.take(now) ?? 0;
    if (delayMs > 0) return void this.#apply(primary, { kind: "limited", delayMs });
    this.#apply(primary, STARTED);
    const run = new ReconcileRun(
      key,
      { entry, state, startedAt: now, queuedMs: now - primary.queuedAt },
      this.#surroundings,
    );
    primary.run = run;
    if (!run.isPrimaryDeleted) primary.see(entry.object.metadata);
    this.#runs.add();
    this.#dependencies.runner.run(run).then(
      (outcome) => this.#finish(primary, run, outcome),
      (error: unknown) => this.#finish(primary, run, { ...BROKEN, failure: { error, isHandled: false } }),
    );
  }

  #finish(primary: KnownPrimary, run: ReconcileRun, outcome: PrimaryOutcome<Result>): void {
    const { key, uid, isEnded } = run;
    this.#runs.delete(run);
    const known = this.#dependencies.primaries.get(key);
    const knownUid = known === undefined || uid === undefined ? uid : known.object.metadata.uid;
    const isKnown = known !== undefined && knownUid === uid ? true : this.#isKnown(key);
    const now = this.#clock.now();
    const event = { kind: "finished", outcome, isEnded, now, uid, knownUid, isKnown } as const;
    // After a stop, outcomes are ignored: the aborted signal causes the failures.
    const transition = this.#isAborted ? NO_TRANSITION : this.#apply(primary, event, now);
    primary.run = undefined;
    primary.lastError = transition.state?.isGivenUp === true ? messageOf(outcome.failure?.error) : undefined;
    const { observer } = this.#dependencies;
    if (observer !== undefined) this.#report(observer, run.eventOf(outcome, transition, now) as ReconcileEvent<Result>);
    if (this.#runs.size === 0) this.#onIdle();
    this.#fill();
  }

  #report(observer: ReconcileObserver<Result>, event: ReconcileEvent<Result>): void {
    try {
      observer(event);
    } catch (error) {
      this.#dependencies.logger.error({}, `the observer of reconciles failed: ${messageOf(error)}`);
    }
  }
}
