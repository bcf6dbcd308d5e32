// The external dependents of a controller: their event sources, the objects that store the ids of their resources, and the grace period in which a
// resource that another process has just created may be missing from lists.
import { KindOperations, hasFinalizer } from "../apply/resource-operations.js";
import { latestOf } from "../apply/retry-on-conflict.js";
import type { Sender } from "../apply/sender.js";
import type { WriteTarget } from "../apply/write.js";
import type { LoopListener, Requeue } from "../base/activity.js";
import { isApiError } from "../base/errors.js";
import {
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  builtinKindOf,
  keyOf,
  kindNameOf,
} from "../base/kubernetes-object.js";
import { type Logger, messageOf, withFields } from "../base/logger.js";
import { PRIMARY_INDEX, labelValueOf, provenLinkOf } from "../base/primary-link.js";
import type { ProofKey } from "../base/proof-key.js";
import { type Clock, Semaphore, systemClock } from "../base/wait.js";
import type { ResourceView } from "../cache/resource-view.js";
import { ExternalReconciler, ExternalWrites, type StartGrace } from "../dependents/external-reconciler.js";
import {
  type ExternalStateStore,
  NO_STATES,
  RememberedState,
  StateProofs,
  StatusStateStore,
  type UnprovenReport,
} from "../dependents/external-state.js";
import { ObjectStateStore, STATE_LABEL } from "../dependents/object-state.js";
import { unprovenRun } from "../dependents/once.js";
import { type ControllerDefinition, dependentsOf, finalizerOf } from "../reconcile/controller-definition.js";
import type { ExternalDependentSource, ExternalOrigin, ExternalWatch } from "../sources/dependent-sources.js";
import type { EventSource } from "../sources/event-source.js";
import { CREATION_GRACE_MS } from "../sources/external-cache.js";
import type { FetchContext } from "../sources/external-source.js";
import { KindSource } from "../sources/kind-source.js";
import { type ExternalDependent, type KubernetesDependent, isKubernetes } from "../workflow/workflow-definition.js";
import type { OperatorContext } from "./controller-parts.js";

interface ExternalParts {
  readonly definition: ControllerDefinition;
  readonly operator: OperatorContext;
  readonly primaries: ResourceView;
  /** Writes the objects that store ids. */
  readonly sender: Sender;
  readonly loops: LoopListener;
  readonly requeue: Requeue;
}

/** A dependent that stores the ids of its resources or the objects that it wrote. */
interface StoreOptions extends Pick<ExternalDependent, "name" | "movedFrom" | "state" | "bulk"> {
  /** Whether whole objects are stored instead of ids. */
  readonly isObject: boolean;
}

// Applies only to the first start after an upgrade from a version without proofs.
const MOST_SIGNED_AT_ONCE = 16;

// Name of the event source of the objects that store ids. For kinds other than ConfigMap, the kind is appended.
const STATE_SOURCE = "external-state";

const CONFIG_MAP: ResourceDefinition = builtinKindOf({ kind: "ConfigMap", plural: "configmaps" });
const SECRET: ResourceDefinition = builtinKindOf({ kind: "Secret", plural: "secrets" });

/** The external dependents of a controller, and the stores of the ids of their resources. */
export class ExternalDependents {
  readonly watches: readonly ExternalWatch[];
  /** Sources that watch the objects that store ids. */
  readonly sources: readonly EventSource[];
  readonly #definition: ControllerDefinition;
  readonly #parts: ExternalParts;
  readonly #label: string;
  /** By kind of the objects that store ids. */
  readonly #stateViews = new Map<string, KindSource>();
  readonly #stores = new Map<string, RememberedState>();
  #key: ProofKey | undefined;
  readonly #graces: StartGraces;

  constructor(parts: ExternalParts) {
    const { definition } = parts;
    this.#definition = definition;
    this.#parts = parts;
    this.#label = labelValueOf(definition.name);
    this.#graces = new StartGraces((primary, source) => parts.requeue(primary, { source }));
    const externals = dependentsOf(definition).flatMap((each) => (isKubernetes(each) ? [] : [each]));
    for (const each of externals) {
      const store = this.#createStore({ ...each, isObject: each.stateOf !== undefined });
      if (store !== undefined) this.#stores.set(each.name, new RememberedState(store, this.#reporterOf(each)));
    }
    for (const each of dependentsOf(definition)) {
      if (!isKubernetes(each) || each.mode !== "once") continue;
      const { name, movedFrom = [], bulk } = each;
      const kept = { name, movedFrom, ...(bulk && { bulk }) };
      const store = this.#createStore({ ...kept, state: { kind: "configMap" }, isObject: true });
      this.#stores.set(name, new RememberedState(store!, this.#reporterOfRuns(each)));
    }
    this.watches = externals.map((each) => this.#watchOf(each));
    this.sources = [...this.#stateViews.values()];
  }

  createReconciler(definition: ExternalDependent, source: ExternalDependentSource): ExternalReconciler {
    const { name: dependent, creationGraceMs } = definition;
    const { name: controller } = this.#definition;
    const { loops, operator } = this.#parts;
    return new ExternalReconciler({
      ...{ definition, source, state: this.#stores.get(dependent) },
      writes: new ExternalWrites({
        controller,
        dependent,
        loops: () => loops,
        onWrite: (event) => operator.observers.forEach((each) => each.onExternalWrite?.(event)),
      }),
      grace: this.#graces.of(dependent, creationGraceMs),
    });
  }

  /** Called when this replica becomes the leader. */
  begin(): void {
    const finalizer = finalizerOf(this.#definition);
    const isUnmarked = dependentsOf(this.#definition).some((each) => !isKubernetes(each) && each.delete === undefined);
    for (const { object } of this.#parts.primaries.list())
      if (finalizer === undefined || isUnmarked) this.#graces.begin(object);
      else this.meet(object);
  }

  /** Called for a new primary. If it already has the finalizer, another process, such as another shard, has reconciled it. */
  meet(primary: KubernetesObject): void {
    const finalizer = finalizerOf(this.#definition);
    // The finalizer is added before any resource is created that the operator has to delete.
    if (finalizer !== undefined && hasFinalizer(primary, finalizer)) this.#graces.begin(primary);
  }

  /** Cancels the requeues at the end of grace periods. */
  close(): void {
    this.#graces.close();
  }

  /** Whether ids are stored, so that the proof key is needed. */
  get needsKey(): boolean {
    return this.#stores.size > 0;
  }

  /**
   * Loads the key that signs ids. Call it when this replica leads and the caches contain all ids, before anything is fetched or reconciled. Ids that
   * an earlier version stored without a proof are signed once; afterwards, unsigned ids are ignored.
   */
  async open(signal: AbortSignal): Promise<void> {
    if (!this.needsKey) return;
    const { primaries, operator } = this.#parts;
    const { proofKey, logger } = operator;
    const { name, formerNames = [] } = this.#definition;
    this.#key = await proofKey.load(signal);
    if (!(await proofKey.isMarked([name, ...formerNames]))) {
      const slots = new Semaphore(MOST_SIGNED_AT_ONCE);
      const counts = await Promise.all(
        primaries.list().map(async ({ object }) => {
          await slots.acquire();
          return this.#adopt(object).finally(() => slots.release());
        }),
      );
      const total = counts.reduce((sum, count) => sum + count, 0);
      if (total > 0) logger.info({ controller: name }, `signed ${total} ids of external resources that had no proof`);
    }
    await proofKey.mark(name);
  }

  async #adopt(primary: KubernetesObject): Promise<number> {
    let count = 0;
    for (const [dependent, store] of this.#stores)
      try {
        count += await store.adopt(primary);
      } catch (error) {
        // Do not retry a rejected write: otherwise a tenant could keep the operator from ever requiring proofs. The id stays unsigned and is
        // reported.
        if (!isApiError(error) || error.code >= 500 || error.code === 429) throw error;
        const problem = `the ids of dependent "${dependent}" could not be signed: ${messageOf(error)}`;
        this.#loggerFor(primary).warn({ dependent }, problem);
      }
    return count;
  }

  forget(primary: ObjectKey): void {
    for (const store of this.#stores.values()) store.forget(primary);
  }

  #watchOf(dependent: ExternalDependent): ExternalWatch {
    const { name, source, activationCondition, idOf, create, update, delete: remove } = dependent;
    const isWritten = [create, update, remove].some((each) => each !== undefined);
    return {
      name,
      origin: this.#withState(dependent),
      idOf: (resource) => idOf?.(resource) ?? "",
      isActivatedLater: activationCondition !== undefined,
      isWritten,
      prepare: async (primary, signal) => {
        await this.#lookUpForCleanup(primary, signal, [name]);
        // A poll that covers all primaries does not use ids.
        return source.kind !== "poll" && this.#stores.get(name)?.takeNews(primary) === true;
      },
    };
  }

  // Adds the stored ids of a primary to the arguments of fetch().
  #withState({ name, creationGraceMs, source: stated }: ExternalDependent): ExternalOrigin {
    const origin =
      stated.kind === "eventSource" || creationGraceMs === undefined ? stated : { ...stated, creationGraceMs };
    if (origin.kind === "poll" || origin.kind === "eventSource" || origin.fetch === undefined) return origin;
    const { fetch } = origin;
    const withState = (primary: KubernetesObject, context: FetchContext) => {
      const state = this.#stores.get(name)?.read(primary) ?? NO_STATES;
      return fetch(primary, { ...context, state } as FetchContext);
    };
    return { ...origin, fetch: withState };
  }

  #reporterOf({ name: dependent }: ExternalDependent): UnprovenReport {
    const { proofKey } = this.#parts.operator;
    const { name: controller } = this.#definition;
    return (about, { place, proofPlace }, { key, isKnown }) => {
      const what = `the id of dependent "${dependent}"${key === "" ? "" : `, item "${key}",`} at ${place} was not written by this operator: its proof`;
      const end = isKnown
        ? "the operator goes on with the id that it wrote there, and writes it again"
        : `it is not used. Remove it if its resource does not belong to this primary, or is gone; to accept it, run "${proofKey.describeReset(controller)}" and restart the operator`;
      const note = `${what} (${proofPlace}) is missing or wrong; ${end}`;
      this.#report(about, { dependent, ...(key === "" ? {} : { item: key }) }, note);
    };
  }

  /** Returns the store of a dependent with `mode: once`, or undefined if the dependent has none. */
  memoryOf(dependent: string): RememberedState | undefined {
    return this.#stores.get(dependent);
  }

  #reporterOfRuns({ name: dependent }: KubernetesDependent): UnprovenReport {
    return (about, kept, { isKnown }) => {
      const known = `${kept.place} was changed, without a proof of this operator (${kept.proofPlace}); it is written again`;
      const note = isKnown ? known : unprovenRun(dependent, kept).message;
      this.#report(about, { dependent }, note);
    };
  }

  #report(about: KubernetesObject, fields: object, note: string): void {
    const { name: controller } = this.#definition;
    this.#loggerFor(about).warn(fields, note);
    this.#parts.operator.events.record(
      { controller, about },
      { type: "Warning", reason: "UnprovenId", action: "Read", note },
    );
  }

  #createStore({ name, movedFrom = [], state, bulk, isObject }: StoreOptions): ExternalStateStore | undefined {
    const { name: controller, formerNames = [], workflow } = this.#definition;
    const { primary } = workflow;
    const { primaries, sender } = this.#parts;
    const proofs = new StateProofs({
      key: () => {
        if (this.#key === undefined)
          throw new Error(`the key that proves the ids of dependent "${name}" is not loaded yet`);
        return this.#key;
      },
      controllers: [controller, ...formerNames],
      dependents: [name, ...movedFrom],
    });
    const form = { isMap: bulk !== undefined, isObject };
    // Without a signal: the write completes even if its step is aborted, because an id that is not stored is lost when the process exits.
    const causeOf = (about: KubernetesObject) => ({ dependent: name, logger: this.#loggerFor(about) });
    // Urgent writes are never postponed by a write loop.
    const operationsOn = (target: WriteTarget, about: KubernetesObject) =>
      new KindOperations(target, { sender, isUrgent: true, cause: causeOf(about) });
    if (state?.kind === "status") {
      const onPrimary = (about: KubernetesObject) => operationsOn({ definition: primary, cache: primaries }, about);
      const refOf = ({ metadata: { name, namespace } }: KubernetesObject) => ({ name, namespace });
      return new StatusStateStore({
        ...{ path: state.path, form, proofs },
        latest: (object) => latestOf(primaries, object),
        mergePatchStatus: (about, status) =>
          onPrimary(about).mergePatchStatus({ metadata: refOf(about), status } as never),
        mergePatchAnnotations: (about, annotations) =>
          onPrimary(about).mergePatch({ metadata: { ...refOf(about), annotations } } as never),
      });
    }
    if (state === undefined) return undefined;
    const kind = state.kind === "resource" ? state.resource : state.kind === "secret" ? SECRET : CONFIG_MAP;
    const { view } = this.#stateViewOf(kind);
    const target = { definition: kind, cache: view };
    return new ObjectStateStore({
      ...{ dependent: name, movedFrom, form, state, primary, proofs, view },
      ...{ label: this.#label, formerLabels: formerNames.map(labelValueOf) },
      ownedBy: ({ metadata }) => view.byIndex(PRIMARY_INDEX, provenLinkOf({ metadata })).map(({ object }) => object),
      read: async (ref, _about, signal) => (await sender.read(target, ref, signal))?.object,
      apply: (object, about) => {
        // With the resourceVersion, the apply creates the object or fails with a conflict. With the UID, it can neither create an object nor change
        // another one.
        const { uid } = object.metadata;
        const metadata = uid === undefined ? { ...object.metadata, resourceVersion: "1" } : object.metadata;
        return operationsOn(target, about).apply({ ...object, metadata } as never);
      },
      delete: (object, about) => sender.delete(target, object, { cause: causeOf(about) }),
      warn: (text, about) => this.#loggerFor(about).warn({ dependent: name }, text),
    });
  }

  #stateViewOf(definition: ResourceDefinition): KindSource {
    const kind = kindNameOf(definition);
    const known = this.#stateViews.get(kind);
    if (known !== undefined) return known;
    const source = new KindSource({
      name: definition === CONFIG_MAP ? STATE_SOURCE : `${STATE_SOURCE} ${kind}`,
      request: { definition, labelSelector: this.#stateSelector },
      // fetch() may need the ids, so they are listed before external resources are fetched.
      startPriority: "first",
      // Internal sources are hidden from lookups by type: a user function that asks for ConfigMaps must not get these.
      isInternal: true,
      onLoad: (primary, signal) => this.#lookUpForCleanup(primary, signal),
    });
    this.#stateViews.set(kind, source);
    return source;
  }

  get #stateSelector(): string {
    const { formerNames = [] } = this.#definition;
    const labels = [...new Set([this.#label, ...formerNames.map(labelValueOf)])].sort();
    return labels.length === 1 ? `${STATE_LABEL}=${this.#label}` : `${STATE_LABEL} in (${labels.join(",")})`;
  }

  /** Before a cleanup, reads the stored objects by name if the watch does not have them: another client may have removed their label. */
  async #lookUpForCleanup(
    primary: KubernetesObject,
    signal: AbortSignal,
    dependents: Iterable<string> = this.#stores.keys(),
  ): Promise<void> {
    if (primary.metadata.deletionTimestamp === undefined) return;
    const stores = [...dependents].flatMap((each) => this.#stores.get(each) ?? []);
    await Promise.all(stores.map((store) => store.lookUp(primary, "", { signal, isCleanup: true })));
  }

  #loggerFor({ metadata: { namespace, name } }: KubernetesObject): Logger {
    const { name: controller, workflow } = this.#definition;
    return withFields(this.#parts.operator.logger, () => ({
      controller,
      kind: workflow.primary.kind,
      namespace,
      name,
    }));
  }
}

/**
 * Grace periods after a start, in which a resource may exist although lists of its service do not contain it: the previous process or another shard
 * may have just created it. Primaries that had no finalizer when they were first seen need none: only this process has created resources for them.
 */
export class StartGraces {
  readonly #reconcile: (primary: ObjectKey, dependent: string) => void;
  readonly #clock: Clock;
  /** The longest grace period of all dependents. */
  #longestMs = 0;
  /** When primaries of another process were first seen, by UID in order of time. Entries are kept until the grace periods have ended. */
  readonly #metAt = new Map<string | undefined, number>();
  /** Cancels the requeue at the end of a grace period, by dependent and primary. */
  readonly #waiting = new Map<string, () => void>();

  constructor(reconcile: (primary: ObjectKey, dependent: string) => void, clock: Clock = systemClock) {
    this.#reconcile = reconcile;
    this.#clock = clock;
  }

  /** Returns the grace period of a dependent. Call it for all dependents before begin(). */
  of(dependent: string, graceMs = CREATION_GRACE_MS): StartGrace {
    this.#longestMs = Math.max(this.#longestMs, graceMs);
    return {
      remainingMs: ({ metadata: { uid } }) => {
        this.#forgetOver();
        const metAt = this.#metAt.get(uid);
        return metAt === undefined ? 0 : Math.max(0, metAt + graceMs - this.#clock.now());
      },
      reconcileAfter: ({ metadata }, ms) => {
        const primary = keyOf(metadata);
        const key = `${dependent} ${primary}`;
        this.#waiting.get(key)?.();
        const resume = () => {
          this.#waiting.delete(key);
          this.#reconcile(primary, dependent);
        };
        this.#waiting.set(key, this.#clock.schedule(ms, resume));
      },
    };
  }

  /** Starts the grace periods of a primary for which another process may have created resources. */
  begin({ metadata: { uid } }: KubernetesObject): void {
    if (this.#longestMs === 0) return;
    this.#forgetOver();
    this.#metAt.delete(uid);
    this.#metAt.set(uid, this.#clock.now());
  }

  #forgetOver(): void {
    for (const [uid, metAt] of this.#metAt) {
      if (this.#clock.now() - metAt < this.#longestMs) return;
      this.#metAt.delete(uid);
    }
  }

  /** Cancels all requeues. */
  close(): void {
    for (const cancel of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }
}
