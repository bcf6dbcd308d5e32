import type { EventSink, LoopListener } from "../base/activity.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { labelValueOf, PRIMARY_INDEX, provenLinkOf } from "../base/primary-link.js";
import { isApiError } from "../base/errors.js";
import { messageOf, withFields, type Logger } from "../base/logger.js";
import type { ProofKey } from "../base/proof-key.js";
import { Semaphore } from "../base/semaphore.js";
import { builtinKindOf, kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import type { EventSource } from "../sources/event-source.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { ExternalDependentSource, ExternalOrigin, ExternalWatch } from "../sources/external/external-watch.js";
import type { FetchContext } from "../sources/external/external-source.js";
import { KindSource } from "../sources/kind/kind-source.js";
import { dependentsOf, finalizerOf, type ControllerDefinition } from "../reconcile/controller-definition.js";
import { ExternalReconciler } from "../workflow/dependents/external-reconciler.js";
import type { ProofKeySecret } from "../operate/proof-key-secret.js";
import { createStatusState, NO_STATES, RememberedState } from "../workflow/dependents/external-state.js";
import type { ExternalStateStore, UnprovenReport } from "../workflow/dependents/external-state.js";
import { ObjectStateStore, STATE_LABEL } from "../workflow/dependents/object-state.js";
import { StateProofs } from "../workflow/dependents/state-proofs.js";
import { unprovenRun } from "../workflow/dependents/once.js";
import {
  isKubernetes,
  type ExternalDependent,
  type KubernetesDependent,
} from "../workflow/definition/workflow-definition.js";
import { hasFinalizer } from "../write/resource-operations.js";
import { StartGraces } from "./start-graces.js";
import { ExternalWrites, type ExternalWriteEvent } from "./external-writes.js";
import { KindOperations } from "../write/kind-operations.js";
import type { WriteTarget } from "../write/send/apply-matcher.js";
import { latestOf } from "../write/send/on-latest.js";
import type { Sender } from "../write/send/send.js";

interface ExternalParts {
  /** Keeps the ids. */
  readonly sender: Sender;
  readonly primaries: ResourceView;
  readonly logger: Logger;
  readonly events: EventSink;
  readonly loops: () => LoopListener;
  /** Told about every write of an external resource. */
  readonly onWrite?: ((event: ExternalWriteEvent) => void) | undefined;
  /** Reconciles a primary. */
  notify(primary: ObjectKey, cause: { readonly source: string }): void;
  /** The key that proves the ids. */
  readonly proofKey: Pick<ProofKeySecret, "load" | "isMarked" | "mark" | "describeReset">;
}

/** A dependent of which something is kept. */
interface StoreOptions extends Pick<ExternalDependent, "name" | "movedFrom" | "state" | "bulk"> {
  /** Whether an object is kept, and not an id. */
  readonly isObject: boolean;
}

// How many primaries are signed at once at the first start after an upgrade.
const MOST_SIGNED_AT_ONCE = 16;

// The name of the event source of the objects that keep ids, by their kind if they are no ConfigMaps.
const STATE_SOURCE = "external-state";

const CONFIG_MAP: ResourceDefinition = builtinKindOf({ kind: "ConfigMap", plural: "configmaps" });
const SECRET: ResourceDefinition = builtinKindOf({ kind: "Secret", plural: "secrets" });

/** What is to be known of the external dependents of one controller, and where the ids of their resources are kept. */
export class ExternalDependents {
  /** What is to be known of each, in their order. */
  readonly watches: readonly ExternalWatch[];
  /** What has to be known besides: the objects that keep ids. */
  readonly sources: readonly EventSource[];
  readonly #definition: ControllerDefinition;
  readonly #parts: ExternalParts;
  readonly #label: string;
  /** What knows the objects that keep ids, by their kind. */
  readonly #stateViews = new Map<string, KindSource>();
  readonly #stores = new Map<string, RememberedState>();
  #key: ProofKey | undefined;
  readonly #graces: StartGraces;

  constructor(definition: ControllerDefinition, parts: ExternalParts) {
    this.#definition = definition;
    this.#parts = parts;
    this.#label = labelValueOf(definition.name);
    this.#graces = new StartGraces((primary, source) => parts.notify(primary, { source }));
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
    const { loops, onWrite } = this.#parts;
    return new ExternalReconciler({
      ...{ definition, source, state: this.#stores.get(dependent) },
      writes: new ExternalWrites({ controller, dependent, loops, onWrite }),
      grace: this.#graces.of(dependent, creationGraceMs),
    });
  }

  /** Takes note that this replica leads from now on. */
  begin(): void {
    const finalizer = finalizerOf(this.#definition);
    const isUnmarked = dependentsOf(this.#definition).some((each) => !isKubernetes(each) && each.delete === undefined);
    // A primary gets its finalizer before anything is created for it that the operator deletes.
    const isOld = (object: KubernetesObject) =>
      finalizer === undefined || isUnmarked || hasFinalizer(object, finalizer);
    this.#graces.begin(() => this.#parts.primaries.list().flatMap(({ object }) => (isOld(object) ? object : [])));
  }

  /** Reconciles nothing any more because a grace is over. */
  close(): void {
    this.#graces.close();
  }

  /** Whether ids are kept, so that they have to be opened. */
  get needsKey(): boolean {
    return this.#stores.size > 0;
  }

  /**
   * Loads the key that proves ids, when this replica leads and all ids are known, before anything is fetched or reconciled. What an earlier
   * version kept without proofs is signed once; from then on it counts for nothing.
   */
  async open(signal: AbortSignal): Promise<void> {
    if (!this.needsKey) return;
    const { proofKey, primaries, logger } = this.#parts;
    const { name, formerNames = [] } = this.#definition;
    this.#key = await proofKey.load(signal);
    if (!(await proofKey.isMarked([name, ...formerNames]))) {
      const turns = new Semaphore(MOST_SIGNED_AT_ONCE);
      const counts = await Promise.all(
        primaries.list().map(async ({ object }) => {
          await turns.acquire();
          return this.#adopt(object).finally(() => turns.release());
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
        // What the API server refuses stays unproven, and is reported: otherwise a tenant could keep the operator from ever asking for proofs.
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
        // What is polled for all primaries at once is not fetched by ids.
        return source.kind !== "poll" && this.#stores.get(name)?.takeNews(primary) === true;
      },
    };
  }

  // The resources of one primary may be fetched by the ids that are kept of it.
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
    const { events, proofKey } = this.#parts;
    const { name: controller } = this.#definition;
    return (about, { place, proofPlace }, { key, isKnown }) => {
      const what = `the id of dependent "${dependent}"${key === "" ? "" : `, item "${key}",`} at ${place} was not written by this operator: its proof`;
      const end = isKnown
        ? "the operator goes on with the id that it wrote there, and writes it again"
        : `it is not used. Remove it if its resource does not belong to this primary, or is gone; to accept it, run "${proofKey.describeReset(controller)}" and restart the operator`;
      const note = `${what} (${proofPlace}) is missing or wrong; ${end}`;
      this.#loggerFor(about).warn({ dependent, ...(key === "" ? {} : { item: key }) }, note);
      events.record({ controller, about }, { type: "Warning", reason: "UnprovenId", action: "Read", note });
    };
  }

  /** Returns what is remembered of the objects of a dependent that are created once. */
  memoryOf(dependent: string): RememberedState | undefined {
    return this.#stores.get(dependent);
  }

  #reporterOfRuns({ name: dependent }: KubernetesDependent): UnprovenReport {
    const { events } = this.#parts;
    const { name: controller } = this.#definition;
    return (about, kept, { isKnown }) => {
      const known = `${kept.place} was changed, without a proof of this operator (${kept.proofPlace}); it is written again`;
      const note = isKnown ? known : unprovenRun(dependent, kept).message;
      this.#loggerFor(about).warn({ dependent }, note);
      events.record({ controller, about }, { type: "Warning", reason: "UnprovenId", action: "Read", note });
    };
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
    // What is kept is written to its end also when its step is given up: an id that is not kept is lost with the process.
    const causeOf = (about: KubernetesObject) => ({ dependent: name, logger: this.#loggerFor(about) });
    // Nor is it held back when it is written over and over.
    const operationsOn = (target: WriteTarget, about: KubernetesObject) =>
      new KindOperations(target, { sender, isUrgent: true, cause: causeOf(about) });
    if (state?.kind === "status") {
      const onPrimary = (about: KubernetesObject) => operationsOn({ definition: primary, cache: primaries }, about);
      const refOf = ({ metadata: { name, namespace } }: KubernetesObject) => ({ name, namespace });
      return createStatusState({
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
        // With a version it is created, or meets a conflict; with the uid it is neither created nor another one.
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
      // External resources may be fetched by the ids, so the ids are loaded first.
      startPriority: "first",
      // Nobody who asks for ConfigMaps, or writes some, means these.
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

  /** Before a primary is cleaned up, reads by name what is kept and the watch does not show, of dependents of which no id is known. */
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
    return withFields(this.#parts.logger, () => ({ controller, kind: workflow.primary.kind, namespace, name }));
  }
}
