import type { ControllerActivity, PostponedWrite, SourceHealth, WaitingPrimaries } from "../base/activity.js";
import { checkNamespaces, checkNumbers } from "../base/checks.js";
import { Backoff, sleep, systemClock } from "../base/clock.js";
import { describeObject, keyOf, refOfKey, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, withFields, type Logger } from "../base/logger.js";
import type { EventSource, SourcesListener } from "../sources/event-source.js";
import type { IndexFunction } from "../cache/object-index.js";
import { OwnViews } from "../cache/own-views.js";
import type { ResourceChange } from "../cache/resource-change.js";
import type { SharedInformers } from "../watch/informer-pool.js";
import { ControllerSources, type SecondarySources } from "../sources/controller-sources.js";
import { createPrimarySource, type KindSource } from "../sources/kind/kind-source.js";
import { crdSource } from "../sources/kind/crd-source.js";
import { reconcilerFactory, watchOf, type ReconcilerParts, type SelectorOf } from "./dependent-reconcilers.js";
import type { ExternalWriteEvent } from "./external-writes.js";
import { ExternalDependents } from "./external-dependents.js";
import { namespacesOf } from "./check-controller.js";
import { dependentsOf, finalizerNameOf, finalizerOf } from "../reconcile/controller-definition.js";
import { formerManagersOf, ownFinalizersOn, takenManagersOf } from "../reconcile/controller-definition.js";
import type { ControllerDefinition, EventSourceFacts } from "../reconcile/controller-definition.js";
import { Controller } from "../schedule/controller.js";
import type { Suspects } from "../schedule/dispatch/suspects.js";
import type { ReconcileInProgress } from "../operate/event-loop-monitor.js";
import { CleanupDeadlines } from "../reconcile/cleanup-deadlines.js";
import {
  detailsOf,
  firstOf,
  givenUpOf,
  pausedIn,
  type ControllerDetails,
} from "../schedule/details/controller-details.js";
import { ExpectationRegistry } from "../reconcile/expectations.js";
import { primaryDeletedChannel } from "../operate/channels.js";
import { ForeignWrites } from "../operate/foreign-writes.js";
import { LoopReporter, type LoopObserver } from "../operate/loop-reporter.js";
import type { EventRecorder } from "../operate/events/event-recorder.js";
import { recordPause, recordReconcile, recordWait } from "../operate/events/reconcile-events.js";
import { lateWrites } from "../reconcile/late-writes.js";
import { PrimaryReconciler, type PrimaryDependencies } from "../reconcile/primary-reconciler.js";
import { conditionsManagerOf } from "../reconcile/status/status-conditions.js";
import { RemovedDependents } from "./removed-dependents.js";
import { kindsAskedFor } from "../workflow/conditions/builtin-conditions.js";
import { isKubernetes } from "../workflow/definition/workflow-definition.js";
import { hasFinalizer, ResourceOperations } from "../write/resource-operations.js";
import { Sender } from "../write/send/send.js";
import { Writer } from "../write/writer.js";
import { synchronous } from "../base/promises.js";
import type { ProofKeys } from "../base/proof-key.js";
import type { ProofKeySecret } from "../operate/proof-key-secret.js";
import { requesterOf, type ApiClient } from "../client/api-client.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { LinkedPrimary } from "../workflow/dependents/live-objects.js";
import { StalledPrimaries } from "./stalled-primaries.js";
import { StuckPrimaries } from "./stuck-primaries.js";
import { Sweeper } from "../reconcile/sweeper.js";
import { RunningTasks } from "../schedule/reconcile-run.js";
import type { GivenUp, ReconcileEvent, ReconcileObserver, ReconcileScope } from "../schedule/reconcile-scope.js";

/** What the controllers of an operator share. */
export interface SharedParts
  extends
    Pick<ReconcilerParts, "client" | "clusters" | "fieldManagers">,
    Pick<PrimaryDependencies, "fencingToken" | "tracing"> {
  readonly informers: SharedInformers;
  readonly logger: Logger;
  readonly observer?: ReconcileObserver | undefined;
  readonly onLoop?: LoopObserver | undefined;
  readonly onForeignWrite?: ((write: { readonly controller: string }) => void) | undefined;
  readonly onExternalWrite?: ((event: ExternalWriteEvent) => void) | undefined;
  readonly selectorOf: SelectorOf;
  readonly events: EventRecorder;
  /** The primaries that are reconciled last. */
  readonly suspects: Suspects;
  /** The key that proves what controllers stored where others can write. */
  readonly proofKey: ProofKeySecret;
}

interface SweepOptions {
  /** As `cleanUp` of a sweeper. `scopeOf` makes the scope of a cleanup, which ends with it. */
  cleanUp(
    primary: KubernetesObject,
    signal: AbortSignal,
    scopeOf: (entry: DecodedResource) => ReconcileScope,
  ): Promise<number>;
  /** Returns what a failure means for a primary of this name. */
  failureOf(name: string): string;
  /** Whether a failure is recorded as an Event, too. */
  readonly isRecorded: boolean;
}

// When the API server has executed, or never will, what a process before this one sent.
const SWEEP_AGAIN_AFTER_MS = 11_000;
const READ_PROOFS_EVERY_MS = 60_000;
// How long a controller waits between attempts to prepare what it needs before its first reconcile.
// A pause is up to twice as long: 30 s.
const PREPARE_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/** Whom a controller waits for before it writes. */
export interface Standby {
  /** Called when all that the controller watches is known; resolves when this operator leads. */
  untilLeading(): Promise<void>;
  /** Called with what kept the controller from beginning when it was to lead. */
  onFailure(error: unknown): void;
}

// The API server deletes nothing that has a finalizer: the object has only lost what the watch selects.
function warnIfLost({ key, object, isInitial }: ResourceChange, finalizer: string, logger: Logger): void {
  if (isInitial || object.metadata.deletionTimestamp !== undefined || !hasFinalizer(object, finalizer)) return;
  const what = `${describeObject(object, object.metadata)} is not selected any more, and has the finalizer "${finalizer}" still`;
  const message = `${what}: its deletion will wait until it is selected again, or somebody removes the finalizer`;
  logger.warn({ primary: key, finalizer }, message);
}

/** A controller with everything that it watches, from one start to one stop. */
export class RunningController {
  readonly definition: ControllerDefinition;
  /** Whether all that it watches is known, as far as it can be, so that it reconciles, or does so as soon as its operator leads. */
  isStarted = false;
  readonly #sources: ControllerSources;
  readonly #controller: Controller;
  readonly #expectations: ExpectationRegistry;
  readonly #cleanupDeadlines: CleanupDeadlines;
  readonly #loops: LoopReporter;
  readonly #runner: PrimaryReconciler;
  /** Absent unless the controller cleans up without a finalizer. */
  readonly #sweeper: Sweeper | undefined;
  #cancelSweep: (() => void) | undefined;
  readonly #stuck: StuckPrimaries;
  readonly #stalled: StalledPrimaries;
  /** Cleans up primaries that are not selected; absent unless the controller is responsible for them. */
  readonly #unselected: Sweeper | undefined;
  readonly #listener: SourcesListener;
  readonly #externals: ExternalDependents;
  readonly #foreignWrites: ForeignWrites;
  readonly #logger: Logger;
  /** Aborted when the controller is to stop. */
  readonly #stopping = new AbortController();
  /** Why the controller cannot prepare its first reconcile yet. */
  #problem: string | undefined;
  readonly #proofKeys: ProofKeys;
  /** Whether this replica leads, and has what it needs to reconcile. */
  #isPrepared = false;
  #readProofsAfter = 0;
  /** How many changes of namespaces are under way. */
  #namespaceChanges = 0;
  #isStopped = false;

  constructor(definition: ControllerDefinition, shared: SharedParts) {
    const { client, logger, observer, onLoop, fieldManagers, fencingToken, events, tracing, proofKey } = shared;
    const { name, workflow, indexes, fieldManager = name, labelSelector, fieldSelector } = definition;
    this.definition = definition;
    const primary = createPrimarySource({
      ...{ definition: workflow.primary, labelSelector, fieldSelector },
      indexes: indexes as { readonly [name: string]: IndexFunction } | undefined,
    });
    const primaries = primary.view;
    const views = new OwnViews();
    const ofAll = { client, fieldManagers, views };
    const ofStates = new Sender({ ...ofAll, fieldManager });
    const externals = (this.#externals = new ExternalDependents(definition, {
      ...{ sender: ofStates, primaries, logger, events, proofKey },
      loops: () => this.#loops,
      onWrite: shared.onExternalWrite,
      notify: (key, cause) => this.#sources.notify([key], cause),
    }));
    this.#logger = logger;
    this.#proofKeys = proofKey;
    const onProofUnread = () => void (this.#isPrepared && this.#readProofs().catch(() => {}));
    const sources = (this.#sources = createSources(definition, {
      ...shared,
      primary,
      externals,
      views,
      onProofUnread,
    }));
    const ofLinks: ProofKeys = {
      find: () => proofKey.find(),
      load: async (signal) => {
        const key = await proofKey.load(signal);
        sources.setProofKey(key);
        return key;
      },
    };
    const loops = (this.#loops = new LoopReporter({
      ...{ controller: name, events, logger, observer: onLoop },
      reconcile: (key, cause) => sources.notify([key], { ...cause, isTimer: true }),
      inputsOf: (object) => this.#controller.seenInputsOf(object),
    }));
    const expectations = (this.#expectations = new ExpectationRegistry({
      clock: systemClock,
      onTimeout: (key) => sources.notify([key], { source: "expectations", isTimer: true }),
    }));
    const cleanupDeadlines = (this.#cleanupDeadlines = new CleanupDeadlines({
      clock: systemClock,
      onDue: (key) => sources.notify([key], { source: "cleanupTimeout", isTimer: true }),
    }));
    const formerFieldManagers = takenManagersOf(definition);
    const senderOf = (name: string) =>
      new Sender({ ...ofAll, fieldManager: name, formerFieldManagers, listener: loops });
    const sender = senderOf(fieldManager);
    const parts = {
      ...shared,
      writer: new Writer(sender),
      loops,
      sources,
      views,
      proofKey: ofLinks,
      memoryOf: (name: string) => externals.memoryOf(name),
    };
    const createReconciler = reconcilerFactory(definition, parts);
    const runner = new PrimaryReconciler(definition, {
      ...{ primaries, sender, expectations, cleanupDeadlines, secondaries: sources },
      reconcilerOf: (dependent) =>
        isKubernetes(dependent)
          ? createReconciler(dependent, sources.dependents.get(dependent.name)!)
          : externals.createReconciler(dependent, sources.externals.get(dependent.name)!),
      removedKinds: new RemovedDependents(definition, parts, createReconciler),
      resources: new ResourceOperations({
        ...{ sender, sources, logger },
        primary: { definition: workflow.primary, cache: primaries },
        finalizer: finalizerNameOf(definition),
      }),
      ...(definition.statusConditions === "managed" && {
        conditionsSender: senderOf(conditionsManagerOf(fieldManager)),
        formerConditionsSenders: formerManagersOf(definition).map((each) => senderOf(conditionsManagerOf(each))),
      }),
      namespaces: () => sources.namespaces,
      loopsOf: (primary) => loops.postponedFor(primary),
      ...{ fencingToken, events, tracing, lateWrites },
      onPaused: (object, isPaused) => recordPause(object, isPaused, { controller: name, events, logger }),
    });
    const stalled = (this.#stalled = new StalledPrimaries({
      ...{ controller: name, clock: systemClock, events, afterMs: definition.stalledAfterMs },
      find: (key) => primaries.get(key)?.object,
      isHeld: (primary) => ownFinalizersOn(definition, primary).length > 0,
    }));
    const onReconciled = (event: ReconcileEvent, object: KubernetesObject) => {
      sources.release(object);
      recordReconcile(events, primaries.get(event.primary)?.object, event);
      stalled.onReconciled(event);
      observer?.(event);
    };
    const { suspects } = shared;
    const surroundings = {
      ...{ primaries, runner, logger, suspects, observer: onReconciled },
      unknownFor: sources.unknownFor.bind(sources),
      onWaiting: (object: KubernetesObject, reason: string) =>
        recordWait(object, reason, { controller: name, events, logger }),
    };
    const controller = (this.#controller = new Controller(definition, surroundings));
    this.#runner = runner;
    if (definition.cleanupPolicy === "sweep")
      this.#sweeper = this.#createSweeper(shared, {
        cleanUp: (object, _, scopeOf) => runner.cleanUpDeleted(scopeOf({ object })),
        failureOf: (name) => `objects of ${name}, which seems to be gone, were not deleted`,
        isRecorded: true,
      });
    if (definition.cleanUpUnselected === true)
      this.#unselected = this.#createSweeper(shared, {
        cleanUp: (object, signal, scopeOf) =>
          runner.cleanUpUnselected(object, signal, (entry) => ({ ...scopeOf(entry), isPrimaryDeleted: false })),
        failureOf: (name) => `the cleanup of ${name}, which is not selected, failed`,
        isRecorded: false,
      });
    this.#stuck = this.#createStuck(shared);
    const foreignWrites = (this.#foreignWrites = new ForeignWrites({
      ...{ controller: name, events, logger, onForeignWrite: shared.onForeignWrite },
      fieldManagers: [fieldManager, conditionsManagerOf(fieldManager)],
      writes: requesterOf(client).transport.ownWrites,
    }));
    const finalizer = finalizerOf(definition);
    this.#listener = {
      onPrimaryChange: (change) => {
        if (change.kind === "deleted") {
          primaryDeletedChannel.publish({ controller: name, primary: change.key });
          if (finalizer !== undefined) warnIfLost(change, finalizer, logger);
          if (this.#isPrepared)
            void runner.releaseAfterDeletion(change.object, { signal: this.#stopping.signal, logger });
          if (this.#isPrepared) this.#onDeleted(change.object);
        } else this.#stuck.onSelected(change.object);
        controller.onPrimaryChange(change);
      },
      forget(primary) {
        expectations.forget(primary);
        stalled.forget(primary);
        externals.forget(primary);
      },
      onWritten: ({ object, written }, { definition, primaries: keys }) => {
        for (const key of keys) {
          const primary = primaries.get(key)?.object;
          if (primary !== undefined && written !== undefined)
            return foreignWrites.observe({ definition, object, written, primary });
        }
      },
      onSecondaryChange: controller.onSecondaryChange.bind(controller),
      secondaryOf: (object) => runner.workflows.createSecondary(object),
      onKnown: () => {
        controller.onKnown();
        this.#sweep();
      },
    };
  }

  #createSweeper({ logger, events }: Pick<SharedParts, "logger" | "events">, way: SweepOptions): Sweeper {
    const { name: controller, workflow } = this.definition;
    return new Sweeper({
      clock: systemClock,
      isReconciling: (object) => this.#controller.isReconciling(object),
      cleanUp: async (object, signal) => {
        const tasks: RunningTasks[] = [];
        const scopeOf = ({ object }: DecodedResource) => {
          const scope = scopeOfDeleted(object, { controller, signal, logger });
          tasks.push(scope.tasks);
          return scope;
        };
        try {
          return await way.cleanUp(object, signal, scopeOf);
        } finally {
          for (const each of tasks) each.close();
        }
      },
      onFailure: (about, error, retryAfterMs) => {
        const note = `${way.failureOf(describeObject(workflow.primary, about.metadata))}: ${messageOf(error)}; trying again`;
        logger.warn({ controller, primary: keyOf(about.metadata), retryAfterMs: Math.round(retryAfterMs) }, note);
        if (way.isRecorded)
          events.record({ controller, about }, { type: "Warning", reason: "CleanupFailed", action: "Delete", note });
      },
    });
  }

  #createStuck({ client, logger, events }: Pick<SharedParts, "client" | "logger" | "events">): StuckPrimaries {
    const { name: controller, workflow, labelSelector, fieldSelector } = this.definition;
    const { primary: definition } = workflow;
    const selectors = [labelSelector, fieldSelector].filter((each) => each !== undefined);
    const { workflows } = this.#runner;
    return new StuckPrimaries({
      ...{ controller, definition, logger, events, clock: systemClock, signal: this.#stopping.signal },
      finalizer: finalizerOf(this.definition),
      selector: selectors.length === 0 ? undefined : selectors.join(","),
      cleanUp: this.#unselected && ((primary) => this.#unselected?.add(primary)),
      list: (signal) => listPrimaries(client, { definition, namespaces: this.#sources.namespaces, signal }),
      isSelected: (primary) => this.#isKnown(keyOf(primary.metadata), primary.metadata.uid) || this.#isUnknown(primary),
      isGone: (primary, signal) => this.#runner.isGone(primary, signal),
      leftOf: (primary) => workflows.leftOf(primary),
      linked: () => this.#stubsOf(workflows.primariesOfOrdered((key, uid) => this.#isKnown(key, uid))),
    });
  }

  #onDeleted(primary: KubernetesObject): void {
    this.#sweeper?.add(primary);
    const external = () => this.#runner.workflows.externalsOf(primary);
    this.#stuck.onDeleted(primary, { isReleased: this.#runner.isCleanedUp(primary), external });
  }

  /** Cleans up after the primaries that objects are linked to, and that are not known. */
  #sweep(): void {
    if (this.#sweeper === undefined || !this.#isPrepared || this.#isStopped) return;
    const linked = this.#runner.workflows.linkedPrimaries((key, uid) => this.#isKnown(key, uid));
    for (const stub of this.#stubsOf(linked)) this.#sweeper.add(stub);
  }

  // While the namespace of a primary is not known, the primary is not known to be gone.
  #stubsOf(linked: readonly LinkedPrimary[]): readonly KubernetesObject[] {
    const { apiVersion, kind } = this.definition.workflow.primary;
    const stubs = linked.map(({ key, uid }) => ({ apiVersion, kind, metadata: { ...refOfKey(key), uid } }));
    return stubs.filter((stub) => !this.#isUnknown(stub));
  }

  #isKnown(key: ObjectKey, uid: string | undefined): boolean {
    return this.#sources.primaries.get(key)?.object.metadata.uid === uid;
  }

  #isUnknown(primary: KubernetesObject): boolean {
    return this.#sources.unknownFor(primary) !== undefined;
  }

  /**
   * Starts all that it watches, and reconciles as soon as the state is known, as far as it can be; resolves then, or when only the leadership
   * is missing.
   */
  start(standby?: Standby): Promise<void> {
    return new Promise((resolve, reject) => {
      const untilLeading = async () => {
        if (standby === undefined || this.#isStopped) return;
        this.isStarted = true;
        resolve();
        await standby.untilLeading();
      };
      this.#begin(untilLeading).then(resolve, (error: unknown) => {
        if (this.isStarted) standby?.onFailure(error);
        else reject(error as Error);
      });
    });
  }

  async #begin(untilLeading: () => Promise<void>): Promise<void> {
    await this.#sources.start(this.#listener, async () => {
      await untilLeading();
      await this.#prepare();
    });
    if (this.#isStopped) return;
    this.#controller.start();
    this.isStarted = true;
    void this.#stuck.start();
    if (this.#sweeper === undefined) return;
    this.#sweep();
    this.#cancelSweep = systemClock.schedule(SWEEP_AGAIN_AFTER_MS, () => this.#sweep());
  }

  /** Loads what proves the ids of external resources, once this replica leads: nothing is fetched, or reconciled, before. Tries until that succeeds. */
  async #prepare(): Promise<void> {
    const { signal } = this.#stopping;
    const { name: controller } = this.definition;
    const backoff = new Backoff(PREPARE_BACKOFF);
    while (!this.#isStopped) {
      try {
        await this.#externals.open(signal);
        this.#isPrepared = true;
        this.#foreignWrites.begin();
        if (this.#sources.lacksProofKey) await this.#readProofs();
        this.#problem = undefined;
        return this.#externals.begin();
      } catch (error) {
        this.#problem = messageOf(error);
        if (this.#isStopped) return;
        const retryAfterMs = backoff.next();
        this.#logger.error({ controller, retryAfterMs: Math.round(retryAfterMs) }, `${this.#problem}; trying again`);
        await sleep(retryAfterMs, signal).catch(() => {});
      }
    }
  }

  /** Reads the key of the proofs that links have: without it they do not count. Anyone can write a proof, so that it is not read again and again. */
  async #readProofs(): Promise<void> {
    const now = systemClock.now();
    if (now < this.#readProofsAfter) return;
    this.#readProofsAfter = now + READ_PROOFS_EVERY_MS;
    const key = await this.#proofKeys.find();
    if (key !== undefined) this.#sources.setProofKey(key);
  }

  /** Waits for the reconciles under way, for `deadlineMs` at most; resolves with whether all of them ended. */
  async stopReconciling(deadlineMs: number): Promise<boolean> {
    this.#isStopped = true;
    this.#foreignWrites.end();
    this.#cancelSweep?.();
    this.#stuck.close();
    this.#stalled.close();
    const swept = Promise.all([this.#sweeper?.close(), this.#unselected?.close()]);
    this.#stopping.abort(new Error("the controller was stopped"));
    this.#loops.close();
    this.#externals.close();
    const isStopped = await this.#controller.stop(deadlineMs);
    const waiting = new AbortController();
    await Promise.race([swept, sleep(deadlineMs, waiting.signal)]);
    waiting.abort();
    return isStopped;
  }

  whenIdle(): Promise<void> {
    return this.#controller.dispatcher.whenIdle();
  }

  /** Stops its event sources, for `deadlineMs` at most; resolves with whether all of them stopped. */
  stopSources(deadlineMs: number): Promise<boolean> {
    this.#expectations.close();
    this.#cleanupDeadlines.close();
    return this.#sources.stop(deadlineMs);
  }

  /**
   * Watches other namespaces, all of them if undefined; resolves when their state is known. No event is lost, and none comes twice; what is
   * not watched any more is deleted for event sources alone. Primaries of a namespace that cannot be watched wait. With `watchFailurePolicy:
   * "block"`, and from a list to all namespaces or back, it throws instead, and leaves everything as it is.
   */
  async setNamespaces(namespaces: readonly string[] | undefined): Promise<void> {
    checkNamespaces(`controller "${this.definition.name}"`, namespaces);
    // As JOSDK does: nothing is begun that might see the secondaries of one set of namespaces and the primaries of the other.
    this.#namespaceChanges++;
    this.#controller.pause();
    try {
      await this.#sources.setNamespaces(namespaces);
    } finally {
      if (--this.#namespaceChanges === 0) this.#controller.resume();
    }
  }

  /** The namespaces that it watches, all of them if undefined. */
  get namespaces(): readonly string[] | undefined {
    return this.#sources.namespaces;
  }

  /** Its event sources, by name and by type. */
  get sources(): SecondarySources {
    return this.#sources;
  }

  /** How each of its event sources is doing, by name. */
  health(): { readonly [source: string]: SourceHealth } {
    return this.#sources.health();
  }

  /** The primaries that are not reconciled before more is known of what may belong to them. */
  get waiting(): WaitingPrimaries {
    return firstOf(this.#controller.waiting);
  }

  /** The primaries whose last reconcile failed without a quick retry left. */
  get givenUp(): GivenUp {
    return givenUpOf(this.#controller.primaries);
  }

  /** The primaries whose deletion is blocked, or whose objects remain, until a user acts. */
  get stuck(): WaitingPrimaries {
    const swept = (this.#sweeper?.failures ?? []).map(({ primary, error }) => ({
      primary: keyOf(primary.metadata),
      reason: `its objects were not deleted: ${messageOf(error)}`,
    }));
    const unselected = (this.#unselected?.failures ?? []).map(({ primary, error }) => ({
      primary: keyOf(primary.metadata),
      reason: `it is not selected, and its cleanup failed: ${messageOf(error)}`,
    }));
    return firstOf([...swept, ...unselected, ...this.#stuck.all]);
  }

  /** How many of its primaries somebody has paused. */
  get paused(): number {
    return pausedIn(this.#controller.primaries).length;
  }

  /** The writes that are postponed now. */
  get postponed(): readonly PostponedWrite[] {
    return this.#loops.postponed;
  }

  get failures(): readonly string[] {
    return this.#problem === undefined ? this.#sources.failures : [this.#problem, ...this.#sources.failures];
  }

  /** Why it can reconcile primaries in none of its namespaces; undefined if it can in some. */
  get problem(): string | undefined {
    return this.#sources.problem;
  }

  /** Changes how many primaries are reconciled at once, to the default without a number; reconciles under way go on. */
  setMaxConcurrentReconciles(count?: number): void {
    checkNumbers(`controller "${this.definition.name}"`, { maxConcurrentReconciles: [count, 1] });
    this.#controller.dispatcher.setMaxRunning(count);
  }

  /** What it does now, and how much it was given to do. */
  activity(): ControllerActivity {
    return this.#controller.dispatcher.activity();
  }

  /** The reconciles in progress, with the functions that have not returned. */
  inProgress(): readonly ReconcileInProgress[] {
    const { name: controller } = this.definition;
    return this.#controller.dispatcher.runs.map(({ key: primary, tasks }) => {
      return { controller, primary, calls: tasks.running };
    });
  }

  /** What it knows of its primaries, for people. */
  details(): ControllerDetails {
    return detailsOf(this.#controller.primaries, systemClock.now(), this.#controller.waiting);
  }

  /** Counts what is kept of primaries. */
  counts(): ReturnType<Controller["counts"]> {
    return this.#controller.counts();
  }
}

// The scope in which user functions clean up after a deleted primary. Only its name and uid are known if its deletion event was missed.
function scopeOfDeleted(
  object: KubernetesObject,
  { controller, signal, logger: parent }: { controller: string; signal: AbortSignal; logger: Logger },
): ReconcileScope {
  const key = keyOf(object.metadata);
  const logger = withFields(parent, () => ({ controller, primary: key }));
  return {
    ...{ key, entry: { object }, signal, logger },
    tasks: new RunningTasks({ controller, primary: key, logger, clock: systemClock }),
    reasons: [{ kind: "primary", change: "deleted", isInitial: false }],
    retry: { attempt: 0, isLastAttempt: false },
    ...{ queuedMs: 0, wasPaused: false, isPrimaryDeleted: true },
    isFinalStateUnknown: object.metadata.resourceVersion === undefined,
    isNextReconcileImminent: () => false,
    onStep: () => {},
  };
}

async function* listPrimaries(
  client: ApiClient,
  options: { definition: ResourceDefinition; namespaces: readonly string[] | undefined; signal: AbortSignal },
): AsyncGenerator<readonly KubernetesObject[], void> {
  const { definition, namespaces, signal } = options;
  const isNamespaced = definition.scope === "Namespaced";
  for (const namespace of isNamespaced ? (namespaces ?? [undefined]) : [undefined])
    yield* client.listMetadata({ definition }, { namespace, signal });
}

interface OwnParts {
  readonly primary: KindSource;
  readonly externals: ExternalDependents;
  readonly views: OwnViews;
  onProofUnread(): void;
}

function createSources(
  definition: ControllerDefinition,
  { primary, externals, views, onProofUnread, selectorOf, ...shared }: SharedParts & OwnParts,
): ControllerSources {
  const { client, clusters, informers, logger } = shared;
  const { name: controller, fieldManager = controller, onAllEvents, watchFailurePolicy } = definition;
  const namespaces = namespacesOf(definition, client.connection);
  const dependents = dependentsOf(definition);
  const watches = dependents.filter(isKubernetes).map((each) => watchOf(each, clusters, selectorOf(definition, each)));
  const conditionsOf = (sources: readonly EventSource[]) =>
    sources
      .filter((each) => (each as Partial<KindSource>).connection === undefined)
      .map(({ type, activationCondition }) => ({
        resource: typeof type === "object" ? type : undefined,
        activationCondition,
      }));
  const facts = { controller, primary: primary.view.definition, namespaces, fieldManager };
  const own = sourcesOfUser(definition, facts);
  return new ControllerSources({
    ...{ controller, primary, views, namespaces, fieldManager, onAllEvents, watchFailurePolicy },
    ...{ client, informers, logger, onProofUnread },
    dependents: watches,
    externals: externals.watches,
    sources: [...own, ...externals.sources, ...kindsAskedFor([...dependents, ...conditionsOf(own)]).map(crdSource)],
  });
}

function sourcesOfUser({ name, eventSources }: ControllerDefinition, facts: EventSourceFacts): readonly EventSource[] {
  try {
    const sources: unknown = synchronous(eventSources?.(facts) ?? []);
    if (!Array.isArray(sources)) throw new TypeError(`eventSources() returned ${typeof sources}, and not a list`);
    const missing = sources.findIndex((each) => typeof each !== "object" || each === null);
    if (missing < 0) return sources as EventSource[];
    throw new TypeError(`eventSources() returned ${String(sources[missing])} at [${missing}], and not an event source`);
  } catch (error) {
    const problem = `the event sources of controller "${name}" could not be made: ${messageOf(error)}`;
    throw new Error(problem, { cause: error });
  }
}
