import type { WaitingPrimary } from "../base/activity.js";
import { uidOf, type DecodedResource } from "../base/decoded-resource.js";
import { systemClock, type Clock } from "../base/clock.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import type { ReconcileReason, SecondaryCause } from "../base/reconcile-reason.js";
import type { ResourceChange } from "../cache/resource-change.js";
import { Dispatcher } from "./dispatch/dispatcher.js";
import type { Suspects } from "./dispatch/suspects.js";
import { KnownPrimary, type PrimaryTiming } from "./known-primary.js";
import { createPrimaryFilter, isEdit, seenOf, type PrimaryFilter } from "./primary-filter.js";
import { transitionOf } from "./processor.js";
import { isDeletionNext, NEW_STATE, type Transition } from "./processor-state.js";
import type { ProcessorEffect, ProcessorEvent } from "./processor-state.js";
import { rateLimiterFactoryOf, type RateLimiterFactory } from "./rate-limiter.js";
import { ReconcileRun, type RunSurroundings } from "./reconcile-run.js";
import type { PrimaryLookup, PrimaryOutcome, PrimaryRunner, ReconcileEvent } from "./reconcile-scope.js";
import { guardedRetryOf } from "./retry.js";
import type { ScheduleSettings } from "./schedule-settings.js";

interface ControllerFacts extends ScheduleSettings {
  readonly name: string;
  readonly workflow: { readonly primary: { readonly kind: string } };
}

/** What a controller works with. Event sources fill the caches. */
export interface ControllerDependencies {
  readonly primaries: PrimaryLookup;
  readonly runner: PrimaryRunner;
  readonly logger: Logger;
  /** Says what is not known of what may belong to a primary, so that it must not be reconciled; undefined if all is. Default: all is known */
  readonly unknownFor?: ((primary: KubernetesObject) => string | undefined) | undefined;
  /** Called when a primary has waited for a while for that. */
  readonly onWaiting?: ((primary: KubernetesObject, reason: string) => void) | undefined;
  /** Told of the end of each reconcile, with the object that was reconciled. */
  readonly observer?: ((event: ReconcileEvent, object: KubernetesObject) => void) | undefined;
  readonly clock?: Clock | undefined;
  /** The primaries of all controllers that are reconciled last. Default: none */
  readonly suspects?: Suspects | undefined;
  /** Returns a number from 0 to 1 for the jitter of intervals. Default: `Math.random` */
  readonly random?: () => number;
}

const MAX_RECONCILIATION_INTERVAL_MS = 10 * 60 * 60 * 1000;
const RECONCILE_TIMEOUT_MS = 30 * 60 * 1000;

// What waits for less is no news: watches begin one after the other.
const REPORT_WAIT_MS = 2_000;

const NO_TRANSITION: Transition = { state: undefined, effects: [] };
// A runner that broke its promise not to throw.
const BROKEN = { kind: "reconcile", isFinalizerRemoved: false, wroteStatus: false, wroteResource: false } as const;

/**
 * Decides when primaries are reconciled: each one at a time, many at once, until each is as desired.
 *
 * `processor.ts` takes the decisions. The controller holds the clock, the queue and the running reconciles. Every public function
 * but `stop` runs to its end in one turn of the event loop, so no event comes in between.
 */
export class Controller {
  /** What may run, and how much of it at once. */
  readonly dispatcher: Dispatcher;
  readonly #definition: ControllerFacts;
  readonly #dependencies: ControllerDependencies;
  readonly #surroundings: RunSurroundings;
  readonly #timing: PrimaryTiming;
  readonly #isRelevant: PrimaryFilter;
  readonly #createLimiter: RateLimiterFactory | undefined;
  readonly #primaries = new Map<ObjectKey, KnownPrimary>();
  /** The primaries whose turn came before all was known that may belong to them; without a place in the queue. */
  readonly #waiting = new Map<KnownPrimary, { readonly reason: string; isReported: boolean }>();
  #cancelReport: (() => void) | undefined;
  #isStopped = false;

  constructor(definition: ControllerFacts, dependencies: ControllerDependencies) {
    const { maxReconciliationIntervalMs: longest = MAX_RECONCILIATION_INTERVAL_MS } = definition;
    const { clock = systemClock, random = Math.random, runner, logger, suspects } = dependencies;
    this.#definition = definition;
    this.#dependencies = dependencies;
    const onDue = (primary: KnownPrimary) => void this.#apply(primary, { kind: "timer" });
    this.#timing = { clock, random, resyncAfterMs: longest, onDue };
    const settings = {
      retry: guardedRetryOf(definition.retry, { controller: definition.name, logger, random }),
      resyncAfterMs: longest > 0 ? longest : undefined,
      onAllEvents: definition.onAllEvents ?? false,
    };
    const { kind } = definition.workflow.primary;
    this.#surroundings = { controller: definition.name, kind, logger, clock, settings };
    const { reconcileTimeoutMs: timeoutMs = RECONCILE_TIMEOUT_MS, maxConcurrentReconciles: maxRunning } = definition;
    const primaries = () => this.primaries;
    const begin = (primary: KnownPrimary) => this.#begin(primary);
    const { name: controller } = definition;
    this.dispatcher = new Dispatcher({ clock, controller, suspects, timeoutMs, maxRunning, primaries, begin });
    const isUndone = runner.isUndone.bind(runner);
    this.#isRelevant = createPrimaryFilter({ ...definition, isUndone, logger });
    this.#createLimiter = rateLimiterFactoryOf(definition.rateLimit, { controller, logger });
  }

  /** Starts to reconcile, beginning with the primaries of all events so far. */
  start(): void {
    const { suspects, primaries } = this.#dependencies;
    suspects?.retain(this.#definition.name, (primary) => primaries.has(primary));
    this.dispatcher.start();
  }

  /** Starts no further reconcile until `resume`. Events are kept, and running reconciles go on. */
  pause(): void {
    this.dispatcher.pause();
  }

  /** Goes on after `pause`. Primaries that have left the cache with their namespace are forgotten. */
  resume(): void {
    for (const primary of this.#primaries.values())
      if (!this.#dependencies.primaries.has(primary.key)) this.#apply(primary, { kind: "missed" });
    this.dispatcher.resume();
  }

  /** Puts the primaries into the queue again that waited for what is known now. */
  onKnown(): void {
    for (const primary of [...this.#waiting.keys()]) {
      const object = this.#entryOf(primary)?.object;
      if (object !== undefined && this.#dependencies.unknownFor?.(object) !== undefined) continue;
      this.#waiting.delete(primary);
      this.dispatcher.submit(primary, primary.state.priority);
    }
  }

  /** The primaries that are not reconciled, because what may belong to them is not known, each with the reason. */
  get waiting(): readonly WaitingPrimary[] {
    return [...this.#waiting].map(([{ key }, { reason }]) => ({ primary: key, reason }));
  }

  /** Starts nothing more, waits for what runs, and then aborts its signals; tells whether all of it ended in time. */
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

  /** Tells whether a reconcile of this very primary is under way. */
  isReconciling({ metadata }: KubernetesObject): boolean {
    const entry = this.#primaries.get(keyOf(metadata))?.run?.entry;
    return entry !== undefined && uidOf(entry) === metadata.uid;
  }

  /** Returns what stands for the inputs that the last reconcile of a primary saw; undefined if the controller has none. */
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

  /** All that is known of its primaries. */
  get primaries(): Iterable<KnownPrimary> {
    return this.#primaries.values();
  }

  /** Counts the objects that the controller keeps, to find leaks. */
  counts(): { readonly states: number; readonly timers: number; readonly queued: number; readonly running: number } {
    const timers = [...this.#primaries.values()].filter(({ timer }) => timer.isSet).length;
    const { queued, running } = this.dispatcher.activity();
    return { states: this.#primaries.size, timers, queued, running };
  }

  #onDeletion(change: ResourceChange, reason: ReconcileReason): void {
    const { key, object, isFinalStateUnknown = false } = change;
    const isKnown = this.#isKnown(key);
    const facts = { kind: "deleted", reason, entry: { object }, isFinalStateUnknown, isKnown } as const;
    // A deletion that a filter rejects is not reconciled, but the state of its primary goes.
    const isStarted = this.dispatcher.isStarted && this.#isRelevant(change, true);
    this.#tell(key, { ...facts, isStarted });
    this.#endRunOf(key);
  }

  // A controller on all events sees every reconcile to its end before that of the deletion.
  #endRunOf(key: ObjectKey): void {
    if (!this.#surroundings.settings.onAllEvents) this.#primaries.get(key)?.run?.end();
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
    const { state, effects } = transitionOf(undefined, event, this.#surroundings.settings);
    if (state === undefined) return;
    const primary = new KnownPrimary(key, state, this.#timing);
    this.#primaries.set(key, primary);
    for (const effect of effects) this.#carryOut(primary, effect);
  }

  #apply(primary: KnownPrimary, event: ProcessorEvent): Transition {
    const transition = transitionOf(primary.state, event, this.#surroundings.settings);
    const { state, effects } = transition;
    if (state === undefined) this.#primaries.delete(primary.key);
    primary.state = state ?? NEW_STATE;
    for (const effect of effects) this.#carryOut(primary, effect);
    return transition;
  }

  #carryOut(primary: KnownPrimary, effect: ProcessorEffect): void {
    // After a stop nothing begins any more.
    if (this.#isStopped && effect.kind !== "release" && effect.kind !== "log") return;
    switch (effect.kind) {
      case "submit":
        return this.dispatcher.submit(primary, primary.state.priority);
      case "schedule":
        return primary.wakeAfter(effect.delayMs);
      case "scheduleAt":
        return primary.wakeAfter(effect.at - this.#surroundings.clock.now());
      case "scheduleResync":
        return primary.wakeAfter(primary.resyncAfterMs);
      case "cancelTimer":
        return primary.timer.cancel();
      case "release":
        return this.#release(primary);
      case "log":
        return (primary.run ?? this.#surroundings).logger[effect.level](effect.fields, effect.message);
    }
  }

  #release(primary: KnownPrimary): void {
    // What a successor with this name gets anew.
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
    return isDeletionNext(state, this.#surroundings.settings) ? state.lastKnown : this.#dependencies.primaries.get(key);
  }

  #begin(primary: KnownPrimary): void {
    const now = this.#surroundings.clock.now();
    const entry = this.#entryOf(primary);
    if (entry === undefined) return void this.#apply(primary, { kind: "missed" });
    const unknown = this.#dependencies.unknownFor?.(entry.object);
    if (unknown !== undefined) return this.#wait(primary, unknown);
    this.#waiting.delete(primary);
    const delayMs = (primary.limiter ??= this.#createLimiter?.())?.take(now) ?? 0;
    if (delayMs > 0) return void this.#apply(primary, { kind: "limited", delayMs });
    const run = (primary.run = new ReconcileRun(primary, { entry, now }, this.#surroundings));
    this.#apply(primary, { kind: "started" });
    if (!run.isPrimaryDeleted) primary.seen = seenOf(entry.object, this.#dependencies.runner.inputsOf(entry));
    this.dispatcher.add();
    this.#dependencies.runner.run(run).then(
      (outcome) => this.#finish(primary, run, outcome),
      (error: unknown) => this.#finish(primary, run, { ...BROKEN, failure: { error, isHandled: false } }),
    );
  }

  // What is not known must not be taken for absent. The state keeps the event; it is submitted again when more is known.
  #wait(primary: KnownPrimary, reason: string): void {
    const isReported = this.#waiting.get(primary)?.isReported === true;
    this.#waiting.set(primary, { reason, isReported });
    if (!isReported)
      this.#cancelReport ??= this.#surroundings.clock.schedule(REPORT_WAIT_MS, () => this.#reportWaiting());
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
    const now = this.#surroundings.clock.now();
    const event = { kind: "finished", outcome, isEnded, now, entry, isReplaced, isKnown } as const;
    // After a stop, outcomes are ignored: the aborted signal causes the failures.
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
