import { setMaxListeners } from "node:events";
import { systemClock, type Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { primaryReasonOf, type ReconcileReason, type SecondaryCause } from "../base/reconcile-reason.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { ResourceChange } from "../cache/resource-cache.js";
import { TimerQueue } from "./timer-queue.js";
import { WorkQueue } from "./work-queue.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import { KnownPrimary } from "./known-primary.js";
import { createPrimaryFilter, type PrimaryFilter } from "./primary-filter.js";
import { transitionOf } from "./processor.js";
import {
  isDeletionNext,
  isImminent,
  NEW_STATE,
  type ProcessorEffect,
  type ProcessorEvent,
  type ProcessorSettings,
} from "./processor-state.js";
import { rateLimiterFactoryOf, type RateLimiterFactory } from "./rate-limiter.js";
import { failedOutcome, ReconcileRun, type RunSurroundings } from "./reconcile-run.js";
import type { PrimaryOutcome, ReconcileScope, ReconcileEvent, ReconcileObserver } from "./reconcile-scope.js";
import { guardedRetryOf } from "./retry.js";
import { Turns } from "./turns.js";
import { synchronous } from "../base/promises.js";

/** Does the work of a reconcile; knows nothing of when. */
export interface PrimaryRunner {
  /** Reconciles one primary; a failure is part of the outcome. */
  run(scope: ReconcileScope): Promise<PrimaryOutcome>;
  /** Tells whether a primary should have the finalizer of the controller and does not. */
  lacksFinalizer(primary: KubernetesObject): boolean;
  /** Told that a primary is gone, so that what is kept for it can be forgotten. */
  release?(key: ObjectKey): void;
}

/** The primaries as they are known now. */
export interface PrimaryLookup {
  get(key: ObjectKey): DecodedResource | undefined;
  has(key: ObjectKey): boolean;
  /** Fetches what `has` tells of and `get` does not return, because the cache keeps only a part. */
  load?(keys: readonly ObjectKey[]): Promise<void>;
}

/** What a controller works with; the caches are filled by somebody else. */
export interface ControllerDependencies {
  readonly primaries: PrimaryLookup;
  readonly runner: PrimaryRunner;
  readonly logger: Logger;
  readonly observer?: ReconcileObserver | undefined;
  readonly clock?: Clock | undefined;
}

/** A change of a primary; what brought it is an edit that somebody saw unless it says otherwise. */
export type PrimaryChange = ResourceChange & { readonly isInitial?: boolean; readonly isFinalStateUnknown?: boolean };

// JOSDK's defaults.
const MAX_CONCURRENT_RECONCILES = 50;
const MAX_RECONCILIATION_INTERVAL_MS = 10 * 60 * 60 * 1000;

// What is the same every time is made once.
const TIMER: ProcessorEvent = { kind: "timer" };
const STARTED: ProcessorEvent = { kind: "started" };
const MISSED: ProcessorEvent = { kind: "missed" };
const NO_EFFECTS: readonly ProcessorEffect[] = [];

/**
 * Decides when primaries are reconciled: one at a time for each of them, many at once, until each is as desired.
 *
 * The decisions are those of `processor.ts`; this has the time, the queues and the reconciles under way. Every public function is one
 * turn of the event loop, so nothing happens in between.
 */
export class Controller {
  readonly #definition: ControllerDefinition;
  readonly #dependencies: ControllerDependencies;
  readonly #clock: Clock;
  readonly #settings: ProcessorSettings;
  readonly #surroundings: RunSurroundings;
  readonly #isRelevant: PrimaryFilter;
  readonly #createLimiter: RateLimiterFactory | undefined;
  readonly #maxRunning: number;
  readonly #queue = new WorkQueue<KnownPrimary>();
  readonly #timers: TimerQueue<KnownPrimary>;
  readonly #turns = new Turns(() => this.#fill());
  readonly #primaries = new Map<ObjectKey, KnownPrimary>();
  readonly #abort = new AbortController();
  #isStarted = false;
  #isPaused = false;
  #isStopped = false;
  #onIdle = () => {};
  #idle: Promise<void> | undefined;

  constructor(definition: ControllerDefinition, dependencies: ControllerDependencies) {
    const { maxReconciliationIntervalMs: longest = MAX_RECONCILIATION_INTERVAL_MS } = definition;
    const { clock = systemClock, runner, logger } = dependencies;
    // Every reconcile under way may wait on it.
    setMaxListeners(0, this.#abort.signal);
    this.#definition = definition;
    this.#dependencies = dependencies;
    this.#clock = clock;
    this.#settings = {
      retry: guardedRetryOf(definition.retry, logger),
      resyncAfterMs: longest > 0 ? longest : undefined,
      reconcilesOnAllEvents: definition.reconcilesOnAllEvents ?? false,
    };
    this.#surroundings = {
      controller: definition.name,
      kind: definition.workflow.primary.kind,
      logger,
      clock,
      signal: this.#abort.signal,
      settings: this.#settings,
      isImminent: (key) => this.isImminent(key),
    };
    const lacksFinalizer = (primary: KubernetesObject) => runner.lacksFinalizer(primary);
    this.#isRelevant = createPrimaryFilter({ ...definition, lacksFinalizer, logger });
    this.#createLimiter = rateLimiterFactoryOf(definition.rateLimit);
    this.#maxRunning = definition.maxConcurrentReconciles ?? MAX_CONCURRENT_RECONCILES;
    this.#timers = new TimerQueue({ clock, onDue: (primary) => void this.#apply(primary, TIMER) });
  }

  /** Starts reconciling; what was asked for before is done now. */
  start(): void {
    this.#isStarted = true;
    this.#turns.wake();
  }

  /** Starts no further reconcile until `resume`; events are kept, and those under way go on. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Goes on after `pause`. Primaries that the cache does not know any more, because of their namespace, are forgotten. */
  resume(): void {
    this.#isPaused = false;
    for (const primary of this.#primaries.values())
      if (!this.#dependencies.primaries.has(primary.key)) this.#apply(primary, MISSED);
    this.#turns.wake();
  }

  /**
   * Starts no further reconcile and waits for those under way, for `deadlineMs` at most; then their signal is aborted and they are
   * left alone. Tells whether all of them finished.
   */
  async stop(deadlineMs: number): Promise<boolean> {
    this.#isStopped = true;
    this.#queue.close();
    this.#timers.close();
    const idle = (this.#idle = new Promise<void>((resolve) => (this.#onIdle = resolve)));
    if (this.#queue.runningCount === 0) this.#onIdle();
    const finished = idle.then(() => true);
    let cancel = () => {};
    const late = new Promise<false>((resolve) => (cancel = this.#clock.schedule(deadlineMs, () => resolve(false))));
    const isFinished = await Promise.race([finished, late]);
    cancel();
    this.#abort.abort(new Error("the operator stops"));
    for (const { run } of this.#primaries.values()) run?.close();
    return isFinished;
  }

  /** Resolves when the last reconcile has ended, however long after a stop that is; at once if it was not stopped. */
  async whenIdle(): Promise<void> {
    await this.#idle;
  }

  /** Takes a change of a primary. */
  onPrimaryChange(change: PrimaryChange): void {
    if (this.#isStopped) return;
    const { kind, key, object, old, isInitial = false } = change;
    const { uid, deletionTimestamp } = object.metadata;
    const reason = primaryReasonOf(kind, isInitial);
    if (kind === "deleted") return this.#onDeletion(change, reason);
    // The deletion of the object before was missed.
    if (kind === "updated" && old !== undefined && old.metadata.uid !== uid) {
      const missed = { ...change, kind: "deleted" as const, object: old, isFinalStateUnknown: true };
      this.#onDeletion(missed, primaryReasonOf("deleted", isInitial));
      return this.onPrimaryChange({ ...change, kind: "added" });
    }
    if (!this.#isRelevant(change, this.#primaries.get(key)?.seen)) return;
    this.#tell(key, { kind: "changed", reason, uid, isMarkedForDeletion: deletionTimestamp !== undefined });
  }

  /** Takes a change of something that belongs to these primaries. */
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

  /** Tells whether something came of a primary that no reconcile has seen yet. */
  isImminent(key: ObjectKey): boolean {
    const primary = this.#primaries.get(key);
    return primary !== undefined && isImminent(primary.state, this.#settings);
  }

  /** Counts what is kept, for whoever wants to see that it goes. */
  counts(): { readonly states: number; readonly timers: number; readonly queued: number; readonly running: number } {
    const { readyCount: queued, runningCount: running } = this.#queue;
    return { states: this.#primaries.size, timers: this.#timers.size, queued, running };
  }

  #onDeletion(change: PrimaryChange, reason: ReconcileReason): void {
    const { key, object, isFinalStateUnknown = false } = change;
    const isKnown = this.#isKnown(key);
    const facts = { kind: "deleted", reason, entry: { object }, isFinalStateUnknown, isKnown } as const;
    // What a filter rejects is not reconciled, and goes all the same.
    const isStarted = this.#isStarted && this.#isRelevant(change, undefined);
    this.#tell(key, { ...facts, isStarted });
  }

  // Whether there is an object of this name now that the user's filters let through.
  #isKnown(key: ObjectKey): boolean {
    const { primaries } = this.#dependencies;
    const entry = this.#definition.filters === undefined ? undefined : primaries.get(key);
    if (entry === undefined) return primaries.has(key);
    return this.#isRelevant({ kind: "added", key, object: entry.object }, undefined);
  }

  /** Tells the processor of a primary; looks it up late, because the user's filters may have told of it as well. */
  #tell(key: ObjectKey, event: ProcessorEvent): void {
    const primary = this.#primaries.get(key);
    if (primary === undefined) this.#meet(key, event);
    else this.#apply(primary, event);
  }

  #meet(key: ObjectKey, event: ProcessorEvent): void {
    const { state, effects } = transitionOf(undefined, event, this.#settings);
    if (state === undefined) return;
    const primary = new KnownPrimary(key, state);
    this.#primaries.set(key, primary);
    for (const effect of effects) this.#carryOut(primary, effect);
  }

  /** `now` is the time, if it has just been read. */
  #apply(primary: KnownPrimary, event: ProcessorEvent, now?: number): readonly ProcessorEffect[] {
    const { state, effects } = transitionOf(primary.state, event, this.#settings);
    if (state === undefined) this.#primaries.delete(primary.key);
    // A left-over node of the clock may hold a primary that is gone for a while, but not what it knew.
    primary.state = state ?? NEW_STATE;
    for (const effect of effects) this.#carryOut(primary, effect, now);
    return effects;
  }

  #carryOut(primary: KnownPrimary, effect: ProcessorEffect, now?: number): void {
    switch (effect.kind) {
      case "submit":
        this.#queue.add(primary, effect.priority);
        if (this.#isStarted && !this.#isPaused) this.#turns.wake();
        return;
      case "schedule":
        return this.#timers.schedule(primary, effect.delayMs, now);
      case "scheduleResync":
        return this.#timers.schedule(primary, this.#settings.resyncAfterMs ?? Infinity, now);
      case "cancelTimer":
        return this.#timers.cancel(primary);
      case "release":
        return this.#release(primary);
      case "log":
        return (primary.run ?? this.#surroundings).logger[effect.level](effect.fields, effect.message);
    }
  }

  #release(primary: KnownPrimary): void {
    primary.forgetObject();
    this.#queue.remove(primary);
    this.#timers.cancel(primary);
    this.#dependencies.runner.release?.(primary.key);
  }

  #fill(): void {
    while (this.#isStarted && !this.#isPaused && this.#queue.runningCount < this.#maxRunning) {
      // Neither the clock nor a turn is needed for nothing.
      if (this.#queue.readyCount === 0) return;
      const now = this.#clock.now();
      if (!this.#turns.mayGoOn(now)) return;
      const primary = this.#queue.take();
      if (primary === undefined) return;
      this.#begin(primary, now);
    }
  }

  #begin(primary: KnownPrimary, now: number): void {
    const { key, state } = primary;
    const { primaries } = this.#dependencies;
    const entry = isDeletionNext(state, this.#settings) ? state.lastKnown : primaries.get(key);
    if (entry === undefined && !primaries.has(key)) return this.#skip(primary, MISSED);
    const delayMs = this.#createLimiter === undefined ? 0 : this.#takeFrom(this.#createLimiter, primary, now);
    if (delayMs > 0) return this.#skip(primary, { kind: "limited", delayMs });
    this.#apply(primary, STARTED);
    const run = (primary.run = new ReconcileRun(key, { state, startedAt: now, around: this.#surroundings }));
    const outcome = entry === undefined ? this.#loadAndRun(primary, run) : this.#run(primary, run, entry);
    outcome.then(
      (ended) => this.#finish(primary, run, ended),
      (error: unknown) => this.#finish(primary, run, failedOutcome(error)),
    );
  }

  #takeFrom(createLimiter: RateLimiterFactory, primary: KnownPrimary, now: number): number {
    try {
      primary.limiter ??= createLimiter();
      return synchronous(primary.limiter.take(now));
    } catch (error) {
      this.#dependencies.logger.error({}, `the rate limiter failed, and limits nothing: ${messageOf(error)}`);
      return 0;
    }
  }

  #skip(primary: KnownPrimary, event: ProcessorEvent): void {
    this.#queue.done(primary);
    this.#apply(primary, event);
  }

  // A cache that keeps only a part of the primaries has to fetch this one.
  async #loadAndRun(primary: KnownPrimary, run: ReconcileRun): Promise<PrimaryOutcome> {
    const { primaries } = this.#dependencies;
    await primaries.load?.([run.key]);
    const entry = primaries.get(run.key);
    if (entry === undefined) throw new Error(`${this.#surroundings.kind} "${run.key}" could not be read`);
    return this.#run(primary, run, entry);
  }

  #run(primary: KnownPrimary, run: ReconcileRun, entry: DecodedResource): Promise<PrimaryOutcome> {
    run.entry = entry;
    if (!run.isPrimaryDeleted) primary.see(entry.object.metadata);
    try {
      return this.#dependencies.runner.run(run);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  #finish(primary: KnownPrimary, run: ReconcileRun, outcome: PrimaryOutcome): void {
    const { key, uid } = run;
    const { primaries } = this.#dependencies;
    run.close();
    this.#queue.done(primary);
    const known = primaries.get(key);
    const knownUid = known === undefined || uid === undefined ? uid : known.object.metadata.uid;
    const isKnown = known !== undefined && knownUid === uid ? true : this.#isKnown(key);
    const now = this.#clock.now();
    const event = { kind: "finished", outcome, now, uid, knownUid, isKnown } as const;
    // Nothing is left to decide after the end, and what fails then fails because of it.
    const effects = this.#abort.signal.aborted ? NO_EFFECTS : this.#apply(primary, event, now);
    primary.run = undefined;
    const { observer } = this.#dependencies;
    if (observer !== undefined) this.#report(observer, run.eventOf(outcome, effects, now));
    if (this.#queue.runningCount === 0) this.#onIdle();
    this.#fill();
  }

  #report(observer: ReconcileObserver, event: ReconcileEvent): void {
    try {
      observer(event);
    } catch (error) {
      this.#dependencies.logger.error({}, `the observer of reconciles failed: ${messageOf(error)}`);
    }
  }
}
