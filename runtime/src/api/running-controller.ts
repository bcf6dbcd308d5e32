// One controller from one start to one stop: its parts, how they are connected, and the order in which they start and stop.
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

/** When a replica begins to reconcile. */
export interface Standby {
  /** Called when the caches are synced; resolves when this replica leads. */
  untilLeading(): Promise<void>;
  /** Called if the controller cannot begin to reconcile when the replica leads. */
  onFailure(error: unknown): void;
}

// By then the API server has executed, or never will, what the process before this one sent.
const SWEEP_AGAIN_AFTER_MS = 11_000;
// A pause is up to twice as long: 30 s.
const PREPARE_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/** A controller with its event sources, from one start to one stop. */
export class RunningController {
  readonly definition: ControllerDefinition;
  /** Whether its caches are synced as far as possible, so that it reconciles, or will as soon as its operator leads. */
  isStarted = false;
  readonly #parts: ControllerParts;
  /** Why the controller cannot prepare its first reconcile yet. */
  #problem: string | undefined;
  #isPrepared = false;
  #cancelSweep: (() => void) | undefined;
  /** How many calls of setNamespaces() are in progress. */
  #namespaceChanges = 0;
  #isStopped = false;

  constructor(definition: ControllerDefinition, operator: OperatorContext) {
    this.definition = definition;
    this.#parts = assembleController(definition, operator, () => this.#isPrepared);
  }

  /**
   * Starts the event sources, and reconciles as soon as the caches are synced as far as possible; resolves then, or when the controller only waits for
   * the leadership.
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

  /** Loads the key that proves the ids of external resources, once this replica leads. Nothing is fetched or reconciled before; failures are retried. */
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

  /** Waits for the reconciles in progress, for `deadlineMs` at most; resolves with whether all ended. */
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

  /** Stops the event sources, for `deadlineMs` at most; resolves with whether all stopped. */
  stopSources(deadlineMs: number): Promise<boolean> {
    this.#parts.expectations.close();
    this.#parts.runner.cleanups.close();
    return this.#parts.sources.stop(deadlineMs);
  }

  /**
   * Changes the watched namespaces, to all if undefined; resolves when the caches are synced. No event is lost or delivered twice. Objects that are no
   * longer watched leave the caches of event sources only. Primaries of a namespace that cannot be watched wait. With `watchFailurePolicy: "block"`,
   * and for a change from a list to all namespaces or back, it throws instead, and changes nothing.
   */
  async setNamespaces(namespaces: readonly string[] | undefined): Promise<void> {
    checkNamespaces(`controller "${this.definition.name}"`, namespaces);
    // As in JOSDK: no reconcile begins that could see primaries of one set of namespaces and secondaries of the other.
    this.#namespaceChanges++;
    this.#parts.controller.pause();
    try {
      await this.#parts.sources.setNamespaces(namespaces);
    } finally {
      if (--this.#namespaceChanges === 0) this.#parts.controller.resume();
    }
  }

  /** The watched namespaces; undefined for all. */
  get namespaces(): readonly string[] | undefined {
    return this.#parts.sources.namespaces;
  }

  /** Its event sources, by name and by type. */
  get sources(): SecondarySources {
    return this.#parts.sources;
  }

  /** The health of each event source, by name. */
  health(): { readonly [source: string]: SourceHealth } {
    return this.#parts.sources.health();
  }

  /** The primaries that wait for a watch of their secondaries. */
  get waiting(): WaitingPrimaries {
    return firstOf(this.#parts.controller.waiting);
  }

  /** The primaries whose retries are exhausted. */
  get givenUp(): GivenUp {
    return givenUpOf(this.#parts.controller.primaries);
  }

  /** The primaries whose deletion is blocked, or whose objects remain, until a user acts. */
  get stuck(): WaitingPrimaries {
    return firstOf([...sweepFailures(this.#parts.sweepers), ...this.#parts.stuck.all]);
  }

  /** How many primaries are paused. */
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

  /** Why it cannot reconcile primaries in any namespace; undefined if it can in some. */
  get problem(): string | undefined {
    return this.#parts.sources.problem;
  }

  /** Changes the number of workers, to the default if undefined. Reconciles in progress continue. */
  setMaxConcurrentReconciles(count?: number): void {
    checkNumbers(`controller "${this.definition.name}"`, { maxConcurrentReconciles: [count, 1] });
    this.#parts.controller.dispatcher.setMaxRunning(count);
  }

  /** The workers in use, and the length of the queue. */
  activity(): ControllerActivity {
    return this.#parts.controller.dispatcher.activity();
  }

  /** The reconciles in progress, with the functions that have not returned. */
  inProgress(): readonly ReconcileInProgress[] {
    const { name: controller } = this.definition;
    return this.#parts.controller.dispatcher.runs.map(({ key: primary, tasks }) => {
      return { controller, primary, calls: tasks.running };
    });
  }

  /** The state of its primaries, as the debug endpoint shows it. */
  details(): ControllerDetails {
    return detailsOf(this.#parts.controller.primaries, systemClock.now(), this.#parts.controller.waiting);
  }

  /** The numbers of primaries in its tables, to find leaks. */
  counts(): ReturnType<Controller["counts"]> {
    return this.#parts.controller.counts();
  }
}

/** The causes of reconciles by timers of the runtime. */
const CAUSES = {
  expectations: { source: "expectations", isTimer: true },
  cleanupTimeout: { source: "cleanupTimeout", isTimer: true },
} as const;

/** Makes the parts of a controller, each after those that it uses. Only callbacks use the sources and the queue before they are made. */
function assembleController(
  definition: ControllerDefinition,
  operator: OperatorContext,
  isPrepared: () => boolean,
): ControllerParts {
  const { client, logger, events, proofKey, suspects, observer } = operator;
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
    ...{ ...reporter, observer: (event) => observer.onLoop(event), reconcile: requeue },
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
    ...{ ...reporter, onForeignWrite: (write) => observer.onForeignWrite(write) },
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

/** Returns what the reconciles of a controller need. */
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

/** A step that follows a change of a primary. */
type PrimaryStep = (parts: ControllerParts, change: ResourceChange) => void;

const publishDeletion: PrimaryStep = ({ definition }, { key }) =>
  primaryDeletedChannel.publish({ controller: definition.name, primary: key });

// The API server deletes nothing that has a finalizer: the object has only lost what the watch selects.
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

/** What follows a change of a primary, in this order. */
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

/** The parts that a reconcile which has ended concerns. */
interface ReconciledParts {
  readonly operator: OperatorContext;
  readonly sources: ControllerSources;
  readonly primaries: ResourceView;
  readonly stalled: StalledPrimaries;
}

/** What follows a reconcile, in this order. */
const RECONCILED_STEPS: readonly ((parts: ReconciledParts, event: ReconcileEvent, object: KubernetesObject) => void)[] =
  [
    ({ sources }, _event, object) => sources.release(object),
    ({ operator, primaries }, event) => recordReconcile(operator.events, primaries.get(event.primary)?.object, event),
    ({ stalled }, event) => stalled.onReconciled(event),
    ({ operator }, event) => operator.observer.onReconcile(event),
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
  // The CRD watch of a condition is about the cluster of the operator.
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
