// A controller from one start to the following stop: its parts, their wiring, and the order in which they start and stop.
import { ForeignWrites, LoopReporter } from "../apply/competing-writers.js";
import { ResourceOperations, hasFinalizer } from "../apply/resource-operations.js";
import { Sender } from "../apply/sender.js";
import { Writer } from "../apply/writer.js";
import type { ControllerActivity, PostponedWrite, Requeue, SourceHealth, WaitingPrimaries } from "../base/activity.js";
import { type KubernetesObject, type ObjectKey, describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { synchronous } from "../base/user-calls.js";
import { checkNamespaces, checkNumbers } from "../base/validation.js";
import { Backoff, sleep, systemClock } from "../base/wait.js";
import type { IndexFunction, ResourceChange } from "../cache/resource-cache.js";
import { OwnViews, type ResourceView } from "../cache/resource-view.js";
import { requesterOf } from "../client/api-client.js";
import type { ReconcileInProgress } from "../operate/event-loop-monitor.js";
import { LinkProofs } from "../operate/proof-key-secret.js";
import { primaryDeletedChannel } from "../operate/tracing.js";
import {
  type ControllerDetails,
  type GivenUp,
  detailsOf,
  firstOf,
  givenUpOf,
  pausedIn,
} from "../queue/controller-details.js";
import { Controller, type ReconcileEvent } from "../queue/controller.js";
import {
  type ControllerDefinition,
  type EventSourceFacts,
  conditionsManagerOf,
  dependentsOf,
  finalizerNameOf,
  finalizerOf,
  keptConditionsOf,
  managersOf,
  ownFinalizersOn,
  takenManagersOf,
} from "../reconcile/controller-definition.js";
import { lateWrites } from "../reconcile/late-writes.js";
import { StalledPrimaries, recordPause, recordReconcile, recordWait } from "../reconcile/primary-events.js";
import { PrimaryReconciler } from "../reconcile/primary-reconciler.js";
import type { ConditionSenders } from "../reconcile/primary-writes.js";
import { ExpectationRegistry, type PrimaryDependencies } from "../reconcile/reconcile-context.js";
import {
  ControllerSources,
  type ControllerSourcesOptions,
  type SecondarySources,
  type SourcesListener,
} from "../sources/controller-sources.js";
import { crdSource } from "../sources/crd-source.js";
import type { EventSource } from "../sources/event-source.js";
import { type KindSource, createPrimarySource } from "../sources/kind-source.js";
import { kindsAskedFor } from "../workflow/conditions.js";
import { isKubernetes } from "../workflow/workflow-definition.js";
import type { ControllerParts, DependentParts, OperatorContext } from "./controller-parts.js";
import { namespacesOf } from "./controller-validation.js";
import { ExternalDependents } from "./external-dependents.js";
import { RemovedDependents, reconcilerFactory, watchOf } from "./kubernetes-dependents.js";
import { createStuck, createSweepers, sweepDeleted, sweepFailures } from "./primary-sweeps.js";

/** Delays reconciles until this replica leads. */
export interface Standby {
  /** Called when the caches are synced. Resolves when this replica leads. */
  untilLeading(): Promise<void>;
  /** Called if the controller cannot start to reconcile although the replica leads. */
  onFailure(error: unknown): void;
}

// By then, the API server has executed all requests of the previous process that it will ever execute.
const SWEEP_AGAIN_AFTER_MS = 11_000;
// Backoff adds jitter of up to 100%, so a pause is at most 30 s.
const PREPARE_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/** A controller with its event sources, from one start to the following stop. */
export class RunningController {
  readonly definition: ControllerDefinition;
  /** Whether the caches are synced as far as possible, so that the controller reconciles, or will as soon as its operator leads. */
  isStarted = false;
  readonly #parts: ControllerParts;
  /** Why the first reconcile cannot be prepared yet. */
  #problem: string | undefined;
  #isPrepared = false;
  #cancelSweep: (() => void) | undefined;
  /** The number of setNamespaces() calls in progress. */
  #namespaceChanges = 0;
  #isStopped = false;

  constructor(definition: ControllerDefinition, operator: OperatorContext) {
    this.definition = definition;
    this.#parts = assembleController(definition, operator, () => this.#isPrepared);
  }

  /**
   * Starts the event sources, and reconciles as soon as the caches are synced as far as possible. Resolves at that point, or when the controller
   * waits only for leadership.
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
    const { sources, controller, stuck, sweepers } = this.#parts;
    await sources.start(listenerOf(this.#parts), async () => {
      await untilLeading();
      await this.#prepare();
    });
    if (this.#isStopped) return;
    controller.start();
    this.isStarted = true;
    void stuck.start();
    if (sweepers.deleted === undefined) return;
    sweepDeleted(this.#parts);
    this.#cancelSweep = systemClock.schedule(SWEEP_AGAIN_AFTER_MS, () => sweepDeleted(this.#parts));
  }

  /**
   * Loads the key that proves the ids of external resources, when this replica leads. Nothing is fetched or reconciled before. Failures are retried
   * with backoff.
   */
  async #prepare(): Promise<void> {
    const { stopping, operator, externals, foreignWrites, sources, proofs } = this.#parts;
    const { name: controller } = this.definition;
    const backoff = new Backoff(PREPARE_BACKOFF);
    while (!this.#isStopped) {
      try {
        await externals.open(stopping.signal);
        this.#isPrepared = true;
        foreignWrites.begin();
        if (sources.lacksProofKey) await proofs.readAgain();
        this.#problem = undefined;
        return externals.begin();
      } catch (error) {
        this.#problem = messageOf(error);
        if (this.#isStopped) return;
        const retryAfterMs = backoff.next();
        const fields = { controller, retryAfterMs: Math.round(retryAfterMs) };
        operator.logger.error(fields, `${this.#problem}; trying again`);
        await sleep(retryAfterMs, stopping.signal).catch(() => {});
      }
    }
  }

  /** Stops reconciling, and waits up to `deadlineMs` for the reconciles in progress. Resolves with whether all of them ended. */
  async stopReconciling(deadlineMs: number): Promise<boolean> {
    const { foreignWrites, stuck, stalled, sweepers, stopping, loops, externals, controller } = this.#parts;
    this.#isStopped = true;
    foreignWrites.end();
    this.#cancelSweep?.();
    stuck.close();
    stalled.close();
    const swept = Promise.all(Object.values(sweepers).map((each) => each.close()));
    stopping.abort(new Error("the controller was stopped"));
    loops.close();
    externals.close();
    const isStopped = await controller.stop(deadlineMs);
    const waiting = new AbortController();
    await Promise.race([swept, sleep(deadlineMs, waiting.signal)]);
    waiting.abort();
    return isStopped;
  }

  whenIdle(): Promise<void> {
    return this.#parts.controller.dispatcher.whenIdle();
  }

  /** Stops the event sources, waiting up to `deadlineMs`. Resolves with whether all of them stopped. */
  stopSources(deadlineMs: number): Promise<boolean> {
    this.#parts.expectations.close();
    this.#parts.runner.cleanups.close();
    return this.#parts.sources.stop(deadlineMs);
  }

  /**
   * Changes the watched namespaces, or watches all namespaces if undefined. Resolves when the caches are synced. No event is lost or delivered twice.
   * Objects that are no longer watched are removed only from the caches of event sources. Primaries in a namespace that cannot be watched wait; with
   * `watchFailurePolicy: "block"`, and for a change between a list and all namespaces, it throws instead and changes nothing.
   */
  async setNamespaces(namespaces: readonly string[] | undefined): Promise<void> {
    checkNamespaces(`controller "${this.definition.name}"`, namespaces);
    // As in JOSDK, no reconcile starts in between: it could see primaries of the old namespaces and secondaries of the new ones.
    this.#namespaceChanges++;
    this.#parts.controller.pause();
    try {
      await this.#parts.sources.setNamespaces(namespaces);
    } finally {
      if (--this.#namespaceChanges === 0) this.#parts.controller.resume();
    }
  }

  /** The watched namespaces, or undefined for all. */
  get namespaces(): readonly string[] | undefined {
    return this.#parts.sources.namespaces;
  }

  /** The event sources, by name and by type. */
  get sources(): SecondarySources {
    return this.#parts.sources;
  }

  /** Returns the health of each event source, by name. */
  health(): { readonly [source: string]: SourceHealth } {
    return this.#parts.sources.health();
  }

  /** The primaries that wait until the watches of their secondaries are synced. */
  get waiting(): WaitingPrimaries {
    return firstOf(this.#parts.controller.waiting);
  }

  /** The primaries whose retries are exhausted. */
  get givenUp(): GivenUp {
    return givenUpOf(this.#parts.controller.primaries);
  }

  /** The primaries whose deletion is blocked, or whose objects remain after it, until a user acts. */
  get stuck(): WaitingPrimaries {
    return firstOf([...sweepFailures(this.#parts.sweepers), ...this.#parts.stuck.all]);
  }

  /** The number of paused primaries. */
  get paused(): number {
    return pausedIn(this.#parts.controller.primaries).length;
  }

  /** The writes that are postponed because of write loops. */
  get postponed(): readonly PostponedWrite[] {
    return this.#parts.loops.postponed;
  }

  get failures(): readonly string[] {
    return this.#problem === undefined
      ? this.#parts.sources.failures
      : [this.#problem, ...this.#parts.sources.failures];
  }

  /** Why no primary can be reconciled in any namespace; undefined if primaries can be reconciled in some. */
  get problem(): string | undefined {
    return this.#parts.sources.problem;
  }

  /** Sets the number of workers, or resets it to the default if undefined. Reconciles in progress continue. */
  setMaxConcurrentReconciles(count?: number): void {
    checkNumbers(`controller "${this.definition.name}"`, { maxConcurrentReconciles: [count, 1] });
    this.#parts.controller.dispatcher.setMaxRunning(count);
  }

  /** Returns the number of busy workers and the length of the queue. */
  activity(): ControllerActivity {
    return this.#parts.controller.dispatcher.activity();
  }

  /** Returns the reconciles in progress, with the user functions that have not returned. */
  inProgress(): readonly ReconcileInProgress[] {
    const { name: controller } = this.definition;
    return this.#parts.controller.dispatcher.runs.map(({ key: primary, tasks }) => {
      return { controller, primary, calls: tasks.running };
    });
  }

  /** Returns the state of the primaries, for the debug endpoint. */
  details(): ControllerDetails {
    return detailsOf(this.#parts.controller.primaries, systemClock.now(), this.#parts.controller.waiting);
  }

  /** Returns the number of primaries in each internal table, to detect leaks. */
  counts(): ReturnType<Controller["counts"]> {
    return this.#parts.controller.counts();
  }
}

/** Causes of reconciles that are triggered by timers of the runtime. */
const CAUSES = {
  expectations: { source: "expectations", isTimer: true },
  cleanupTimeout: { source: "cleanupTimeout", isTimer: true },
} as const;

/**
 * Creates the parts of a controller, each after the parts it uses. The sources and the queue are used before their creation only by callbacks, which
 * run later.
 */
function assembleController(
  definition: ControllerDefinition,
  operator: OperatorContext,
  isPrepared: () => boolean,
): ControllerParts {
  const { client, logger, events, proofKey, suspects, observers } = operator;
  const { name, workflow, indexes, labelSelector, fieldSelector } = definition;
  const managers = managersOf(definition);
  const finalizer = finalizerOf(definition);
  const reporter = { controller: name, logger, events };
  const stopping = new AbortController();
  const requeue: Requeue = (key, cause) => sources.notify([key], cause);
  const primary = createPrimarySource({
    ...{ definition: workflow.primary, labelSelector, fieldSelector },
    indexes: indexes as { readonly [name: string]: IndexFunction } | undefined,
  });
  const primaries = primary.view;
  const views = new OwnViews();
  const loops = new LoopReporter({
    ...{ ...reporter, observer: (event) => observers.forEach((each) => each.onLoop?.(event)), reconcile: requeue },
    inputsOf: (object) => controller.seenInputsOf(object),
  });
  const externals = new ExternalDependents({
    ...{ definition, operator, primaries, loops, requeue },
    sender: createSender(managers.own, { operator, views }),
  });
  const proofs = new LinkProofs(proofKey, (key) => sources.setProofKey(key));
  const sources = new ControllerSources(
    sourcesOptionsOf(definition, operator, {
      ...{ primary, views, externals },
      onProofUnread: () => void (isPrepared() && proofs.readAgain().catch(() => {})),
    }),
  );
  const formerFieldManagers = takenManagersOf(definition);
  const senderOf = (fieldManager: string) =>
    createSender(fieldManager, { operator, views, formerFieldManagers, listener: loops });
  const sender = senderOf(managers.own);
  const conditionSenders = managers.conditions && {
    own: senderOf(managers.conditions.own),
    formerStatuses: managers.former.map(senderOf),
    formerConditions: managers.conditions.former.map(senderOf),
  };
  const writer = new Writer(sender);
  const ofDependents = { definition, operator, views, primaries, sources, externals, writer, loops, proofs };
  const expectations = new ExpectationRegistry({
    clock: systemClock,
    onTimeout: (key) => requeue(key, CAUSES.expectations),
  });
  const runner = new PrimaryReconciler(
    definition,
    runnerPartsOf({ ...ofDependents, sender, conditionSenders, expectations, requeue }),
  );
  const stalled = new StalledPrimaries({
    ...{ controller: name, clock: systemClock, events, afterMs: definition.stalledAfterMs },
    find: (key) => primaries.get(key)?.object,
    isHeld: (object) => ownFinalizersOn(runner.finalizer, object).length > 0,
  });
  const reconciled = { operator, sources, primaries, stalled };
  const controller = new Controller(definition, {
    ...{ primaries, runner, logger, suspects },
    unknownFor: (object) => sources.unknownFor(object),
    onWaiting: (object, reason) => recordWait(object, reason, reporter),
    observer: (event, object) => {
      for (const step of RECONCILED_STEPS) step(reconciled, event, object);
    },
  });
  const foreignWrites = new ForeignWrites({
    ...{ ...reporter, onForeignWrite: (write) => observers.forEach((each) => each.onForeignWrite?.(write)) },
    fieldManagers: [managers.own, conditionsManagerOf(managers.own)],
    writes: requesterOf(client).transport.ownWrites,
  });
  const core = {
    ...ofDependents,
    expectations,
    stopping,
    isPrepared,
    finalizer,
    runner,
    stalled,
    controller,
    foreignWrites,
  };
  const sweepers = createSweepers(core);
  return { ...core, sweepers, stuck: createStuck(core, sweepers) };
}

interface RunnerParts extends DependentParts {
  readonly sender: Sender;
  readonly expectations: ExpectationRegistry;
  readonly requeue: Requeue;
  readonly conditionSenders: ConditionSenders | undefined;
}

/** Returns the dependencies of the reconciles of a controller. */
function runnerPartsOf(parts: RunnerParts): PrimaryDependencies {
  const {
    definition,
    operator,
    primaries,
    sources,
    externals,
    loops,
    sender,
    conditionSenders,
    expectations,
    requeue,
  } = parts;
  const { logger, events, tracing, fencingToken } = operator;
  const reporter = { controller: definition.name, logger, events };
  const createReconciler = reconcilerFactory(parts);
  return {
    ...{ primaries, sender, expectations, secondaries: sources, fencingToken, events, tracing, lateWrites },
    onCleanupDue: (key) => requeue(key, CAUSES.cleanupTimeout),
    reconcilerOf: (dependent) =>
      isKubernetes(dependent)
        ? createReconciler(dependent, sources.dependents.get(dependent.name)!)
        : externals.createReconciler(dependent, sources.externals.get(dependent.name)!),
    removedKinds: new RemovedDependents(parts, createReconciler),
    resources: new ResourceOperations({
      ...{ sender, sources, logger },
      primary: { definition: definition.workflow.primary, cache: primaries },
      finalizer: finalizerNameOf(definition),
      conditionTypes: conditionSenders && keptConditionsOf(definition).all,
    }),
    ...(conditionSenders && { conditionSenders }),
    namespaces: () => sources.namespaces,
    loopsOf: (object) => loops.postponedFor(object),
    onPaused: (object, isPaused) => recordPause(object, isPaused, reporter),
  };
}

interface SenderParts {
  readonly operator: OperatorContext;
  readonly views: OwnViews;
  readonly formerFieldManagers?: readonly string[];
  readonly listener?: LoopReporter;
}

function createSender(fieldManager: string, { operator, ...others }: SenderParts): Sender {
  const { client, fieldManagers } = operator;
  return new Sender({ client, fieldManagers, fieldManager, ...others });
}

/** A step that is run when a primary changes. */
type PrimaryStep = (parts: ControllerParts, change: ResourceChange) => void;

const publishDeletion: PrimaryStep = ({ definition }, { key }) =>
  primaryDeletedChannel.publish({ controller: definition.name, primary: key });

// The API server does not delete an object that has finalizers, so this one no longer matches the selector of the watch.
const warnIfFinalizerStays: PrimaryStep = ({ finalizer, operator }, { key, object, isInitial }) => {
  if (finalizer === undefined || isInitial) return;
  if (object.metadata.deletionTimestamp !== undefined || !hasFinalizer(object, finalizer)) return;
  const what = `${describeObject(object, object.metadata)} no longer matches the selector of the controller but still has finalizer "${finalizer}"`;
  const message = `${what}: deletion will block until it matches again or the finalizer is removed`;
  operator.logger.warn({ primary: key, finalizer }, message);
};

const releaseHeldObjects: PrimaryStep = ({ runner, stopping, operator }, { object }) =>
  void runner.cleanups.releaseAfterDeletion(object, { signal: stopping.signal, logger: operator.logger });

const cleanUpDeleted: PrimaryStep = ({ sweepers, stuck, runner }, { object }) => {
  sweepers.deleted?.add(object);
  const external = () => runner.workflows.externalsOf(object);
  stuck.onDeleted(object, { isReleased: runner.cleanups.isCleanedUp(object), external });
};

const whenPrepared =
  (step: PrimaryStep): PrimaryStep =>
  (parts, change) => {
    if (parts.isPrepared()) step(parts, change);
  };
const noteSelected: PrimaryStep = ({ stuck }, { object }) => stuck.onSelected(object);
const meetExternals: PrimaryStep = ({ externals }, { object }) => externals.meet(object);
const enqueue: PrimaryStep = ({ controller }, change) => controller.onPrimaryChange(change);

/** The steps for each kind of change, in order. */
const PRIMARY_STEPS: { readonly [Kind in ResourceChange["kind"]]: readonly PrimaryStep[] } = {
  added: [noteSelected, whenPrepared(meetExternals), enqueue],
  updated: [noteSelected, enqueue],
  deleted: [
    publishDeletion,
    warnIfFinalizerStays,
    whenPrepared(releaseHeldObjects),
    whenPrepared(cleanUpDeleted),
    enqueue,
  ],
};

/** The parts that are notified of a completed reconcile. */
interface ReconciledParts {
  readonly operator: OperatorContext;
  readonly sources: ControllerSources;
  readonly primaries: ResourceView;
  readonly stalled: StalledPrimaries;
}

/** The steps after each reconcile, in order. */
const RECONCILED_STEPS: readonly ((parts: ReconciledParts, event: ReconcileEvent, object: KubernetesObject) => void)[] =
  [
    ({ sources }, _event, object) => sources.release(object),
    ({ operator, primaries }, event) => recordReconcile(operator.events, primaries.get(event.primary)?.object, event),
    ({ stalled }, event) => stalled.onReconciled(event),
    ({ operator }, event) => operator.observers.forEach((each) => each.onReconcile?.(event)),
  ];

function listenerOf(parts: ControllerParts): SourcesListener {
  const { controller, runner, primaries, foreignWrites, expectations, stalled, externals } = parts;
  return {
    onPrimaryChange(change) {
      for (const step of PRIMARY_STEPS[change.kind]) step(parts, change);
    },
    forget(primary) {
      expectations.forget(primary);
      stalled.forget(primary);
      externals.forget(primary);
    },
    onWritten({ object, written }, { definition, primaries: keys }) {
      const primary = written && firstKnown(primaries, keys);
      if (primary !== undefined) foreignWrites.observe({ definition, object, written: written!, primary });
    },
    onSecondaryChange: controller.onSecondaryChange.bind(controller),
    secondaryOf: (object) => runner.workflows.createSecondary(object),
    onKnown() {
      controller.onKnown();
      sweepDeleted(parts);
    },
  };
}

function firstKnown(primaries: ResourceView, keys: Iterable<ObjectKey>): KubernetesObject | undefined {
  for (const key of keys) {
    const primary = primaries.get(key)?.object;
    if (primary !== undefined) return primary;
  }
  return undefined;
}

interface SourceParts {
  readonly primary: KindSource;
  readonly externals: ExternalDependents;
  readonly views: OwnViews;
  onProofUnread(): void;
}

function sourcesOptionsOf(
  definition: ControllerDefinition,
  { client, clusters, informers, logger, selectorOf }: OperatorContext,
  { externals, ...parts }: SourceParts,
): ControllerSourcesOptions {
  const { name: controller, fieldManager = controller, onAllEvents, watchFailurePolicy } = definition;
  const namespaces = namespacesOf(definition, client.connection);
  const dependents = dependentsOf(definition);
  const facts = { controller, primary: parts.primary.view.definition, namespaces, fieldManager };
  const ofUser = sourcesOfUser(definition, facts);
  const conditionsOf = ({ type, activationCondition }: EventSource) => ({
    resource: typeof type === "object" ? type : undefined,
    activationCondition,
  });
  // The activation condition of an event source watches CRDs in the cluster of the operator, so sources in other clusters are left out.
  const local = ofUser.filter((each) => (each as Partial<KindSource>).connection === undefined);
  return {
    ...{ ...parts, controller, namespaces, fieldManager, onAllEvents, watchFailurePolicy, client, informers, logger },
    dependents: dependents.filter(isKubernetes).map((each) => watchOf(each, clusters, selectorOf(definition, each))),
    externals: externals.watches,
    sources: [
      ...ofUser,
      ...externals.sources,
      ...kindsAskedFor([...dependents, ...local.map(conditionsOf)]).map(crdSource),
    ],
  };
}

function sourcesOfUser({ name, eventSources }: ControllerDefinition, facts: EventSourceFacts): readonly EventSource[] {
  try {
    const sources: unknown = synchronous(eventSources?.(facts) ?? []);
    if (!Array.isArray(sources))
      throw new TypeError(`eventSources() must return an array, but returned ${typeof sources}`);
    const missing = sources.findIndex((each) => typeof each !== "object" || each === null);
    if (missing < 0) return sources as EventSource[];
    throw new TypeError(`eventSources()[${missing}] must be an event source, but is ${String(sources[missing])}`);
  } catch (error) {
    const problem = `cannot create the event sources of controller "${name}": ${messageOf(error)}`;
    throw new Error(problem, { cause: error });
  }
}
