// The Kubernetes dependents of a controller: their watches, writers and reconcilers, and the watches for objects of removed dependents.
import { Sender } from "../apply/sender.js";
import { Writer } from "../apply/writer.js";
import { type KubernetesObject, isReachable } from "../base/kubernetes-object.js";
import { selectorOf } from "../base/primary-link.js";
import type { EventFilters } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import { KubernetesReconciler } from "../dependents/kubernetes-reconciler.js";
import { type ReferringDependent, referencedKeyOf } from "../dependents/live-objects.js";
import {
  type ControllerDefinition,
  dependentsOf,
  finalizerNameOf,
  namesOf,
  takenManagersOf,
} from "../reconcile/controller-definition.js";
import type { DependentSource, DependentWatch } from "../sources/dependent-sources.js";
import type { EventSource } from "../sources/event-source.js";
import { KindSource } from "../sources/kind-source.js";
import { type RemovedKinds, type WatchedKind, seesRemoved } from "../workflow/prune.js";
import {
  type KindInCluster,
  type KubernetesDependent,
  type ObjectReference,
  type RemovedDependent,
  deletionOf,
  isKubernetes,
} from "../workflow/workflow-definition.js";
import type { DependentParts, OperatorContext } from "./controller-parts.js";

/** Creates the reconciler of a dependent. `source` caches its objects. */
type ReconcilerFactory = (dependent: KubernetesDependent, source: DependentSource) => KubernetesReconciler;

/**
 * Returns a factory of reconcilers. Dependents with the same cluster, field manager and write method share a Writer, including what it has learned
 * about server-side mutations.
 */
export function reconcilerFactory(parts: DependentParts): ReconcilerFactory {
  const { definition: ofController, operator, writer, views, loops: listener, proofs, externals } = parts;
  const { client: own, clusters, fieldManagers } = operator;
  const { name: controller, formerNames, fieldManager: ownManager = controller } = ofController;
  const finalizer = finalizerNameOf(ofController);
  const formerFieldManagers = takenManagersOf(ofController);
  const writers = new Map<string, Writer>();
  const writerOf = (
    { cluster, fieldManager = ownManager, serverSideApply = true }: KubernetesDependent,
    { source }: DependentSource,
    client: ApiClient | (() => ApiClient),
  ): Writer => {
    // An event source of the user may watch another cluster.
    const place = isElsewhere(source) ? source.name : "";
    if (place === "" && fieldManager === ownManager && serverSideApply) return writer;
    const key = JSON.stringify([cluster ?? place, cluster === undefined, fieldManager, serverSideApply]);
    let known = writers.get(key);
    if (known === undefined) {
      const sender = new Sender({ client, fieldManager, formerFieldManagers, fieldManagers, listener, views });
      writers.set(key, (known = new Writer(sender, { serverSideApply })));
    }
    return known;
  };
  return (definition, source) => {
    const { name, mode, cluster } = definition;
    if (mode !== "readOnly" && deletionOf(definition) === "garbageCollected" && isElsewhere(source.source))
      throw new Error(
        `dependent "${name}" shares event source "${source.source.name}", which watches another cluster, where the garbage collector ` +
          "cannot find its primary; set deletion: ordered to have the operator delete it",
      );
    const client = clientOf(source.source, cluster === undefined ? undefined : clusters.get(cluster), own);
    return new KubernetesReconciler({
      definition,
      source,
      writer: writerOf(definition, source, client),
      client,
      controller,
      formerNames,
      finalizer,
      proofKeys: proofs,
      memory: mode === "once" ? externals.memoryOf(name) : undefined,
    });
  };
}

/** Returns the client of the objects of a source. The client of a source in another cluster exists only while its watch runs. */
function clientOf(
  source: EventSource,
  ofCluster: ApiClient | undefined,
  own: ApiClient,
): ApiClient | (() => ApiClient) {
  if (ofCluster !== undefined) return ofCluster;
  const isLocal = "connection" in source && source.connection === undefined;
  return isLocal ? own : () => source.client ?? own;
}

// Not instanceof: the source may come from another copy of this package.
function isElsewhere(source: EventSource): boolean {
  return "connection" in source && source.connection !== undefined;
}

/**
 * Returns a function that gives the label selector of each dependent. Objects written by controllers carry the label of their controller. Watches
 * with the same scope select the labels of all controllers that write there, so that they share one watch. Other watches use the selector of the
 * user.
 */
export function shareSelectors(controllers: readonly ControllerDefinition[]): OperatorContext["selectorOf"] {
  const writers = new Map<string, string[]>();
  for (const controller of controllers)
    for (const dependent of dependentsOf(controller).filter(isKubernetes)) {
      const place = placeOf(controller, dependent);
      if (place !== undefined) writers.set(place, [...(writers.get(place) ?? []), ...namesOf(controller)]);
    }
  return (controller, dependent) => {
    const place = placeOf(controller, dependent);
    const { labelSelector } = dependent;
    return place === undefined ? labelSelector : selectorOf(writers.get(place) ?? namesOf(controller), labelSelector);
  };
}

// Returns the scope of a watch that needs only objects written by the controller, or undefined if it also needs objects of other clients.
function placeOf(controller: ControllerDefinition, dependent: KubernetesDependent): string | undefined {
  const { name, resource, cluster, namespace, labelSelector, fieldSelector, mode, eventSource, operations } = dependent;
  const isRead = (each: KubernetesDependent) => each.mode === "readOnly" && each.eventSource === name;
  if (mode === "readOnly" || eventSource !== undefined) return undefined;
  // An object created by the user's function gets the label with its first update.
  if (operations?.create !== undefined) return undefined;
  if (dependentsOf(controller).filter(isKubernetes).some(isRead)) return undefined;
  const namespaces = namespace === undefined ? controller.namespaces : [namespace];
  return JSON.stringify([resource.apiVersion, resource.kind, cluster, namespaces, labelSelector, fieldSelector]);
}

/** Returns what to watch for a dependent. */
export function watchOf(
  { filters, cluster, mode, labelSelector: _stated, ...dependent }: KubernetesDependent,
  clusters: OperatorContext["clusters"],
  labelSelector: string | undefined,
): DependentWatch {
  const { ref, fieldSelector } = dependent;
  const named = typeof ref?.name === "string" ? `metadata.name=${escapeValue(ref.name)}` : undefined;
  const selected = [fieldSelector, named].filter((each) => each !== undefined).join(",");
  return {
    ...dependent,
    labelSelector,
    ...(selected === "" ? {} : { fieldSelector: selected }),
    ...(ref === undefined ? {} : referenceOf(dependent, ref)),
    connection: cluster === undefined ? undefined : clusters.get(cluster)!.connection,
    isActivatedLater: dependent.activationCondition !== undefined,
    isReadOnly: mode === "readOnly",
    // The filters are typed for the kind of the dependent.
    filters: filters as EventFilters | undefined,
  };
}

// Escapes like EscapeValue of apimachinery: a name must not add terms to the field selector.
function escapeValue(text: string): string {
  return text.replace(/[\\,=]/g, "\\$&");
}

// The primaries are found by their reference. Objects that no primary refers to take up memory but trigger no reconciles.
function referenceOf(
  dependent: ReferringDependent,
  { namespace }: ObjectReference,
): Pick<DependentWatch, "namespaces" | "primaryToSecondary"> {
  const primaryToSecondary = (primary: KubernetesObject) => {
    const key = referencedKeyOf(dependent, primary);
    return key === undefined ? [] : [key];
  };
  if (namespace === undefined) return { primaryToSecondary };
  return { primaryToSecondary, namespaces: typeof namespace === "string" ? [namespace] : "all" };
}

const NOT_SERVED = new Error("its kind is not served");

// Limits how often reconciles retry after a watch has failed or a kind was not served.
const TRY_AGAIN_AFTER_MS = 10_000;

/** A watch of a kind that only `removed` entries have. */
interface OpenedKind {
  readonly kind: WatchedKind;
  readonly source: KindSource;
}

interface Opened {
  readonly kind: Promise<OpenedKind>;
  failure?: { readonly error: unknown; readonly at: number };
}

/**
 * Finds objects that no dependent claims, in the watches of dependents and in metadata-only watches of the kinds in `removed`. A metadata watch
 * starts with the first reconcile that needs it and runs until the controller stops.
 */
export class RemovedDependents implements RemovedKinds {
  readonly watched: readonly WatchedKind[];
  readonly #parts: DependentParts;
  readonly #createReconciler: ReconcilerFactory;
  /** The watch of a dependent also contains the objects of removed dependents of its kind. */
  readonly #dependents: readonly { readonly dependent: KubernetesDependent; readonly source: DependentSource }[];
  readonly #kinds = new Map<DependentSource["cache"], WatchedKind>();
  readonly #opened = new Map<string, Opened>();

  constructor(parts: DependentParts, createReconciler: ReconcilerFactory) {
    this.#parts = parts;
    this.#createReconciler = createReconciler;
    this.#dependents = dependentsOf(parts.definition)
      .filter(isKubernetes)
      .map((dependent) => ({ dependent, source: parts.sources.dependents.get(dependent.name)! }))
      .filter(({ dependent }) => dependent.mode !== "readOnly");
    this.watched = [...new Set(this.#dependents.map(({ dependent, source }) => this.#kindOf(dependent, source)))];
  }

  async open(name: string, removed: RemovedDependent, primary: KubernetesObject): Promise<WatchedKind | undefined> {
    const shared = this.#dependents.find(({ dependent }) => seesAllOf(dependent, removed));
    if (shared !== undefined) return this.#kindOf(shared.dependent, shared.source);
    const { resource, namespace, cluster } = removed;
    const key = JSON.stringify([resource.group, resource.kind, namespace, cluster]);
    let opened = this.#opened.get(key);
    if (opened === undefined || performance.now() - (opened.failure?.at ?? Infinity) >= TRY_AGAIN_AFTER_MS)
      this.#opened.set(key, (opened = { kind: this.#watch(name, removed) }));
    try {
      if (opened.failure !== undefined) throw opened.failure.error;
      const { kind, source } = await opened.kind;
      await this.#untilKnown(source, primary, opened);
      return kind;
    } catch (error) {
      // A kind that is not served has no objects.
      if (error !== NOT_SERVED) throw error;
      opened.failure ??= { error, at: performance.now() };
      return undefined;
    }
  }

  async #watch(name: string, removed: RemovedDependent): Promise<OpenedKind> {
    const { resource, namespace, cluster } = removed;
    const client = this.#clientOf(cluster);
    const isElsewhere = cluster !== undefined;
    // The kind need not be installed: it is watched only to remove its objects.
    if (!isReachable(resource, await client.servedVersions(resource))) throw NOT_SERVED;
    const connection = isElsewhere ? client.connection : undefined;
    const source = new KindSource({
      name: `removed ${name} (${resource.plural})`,
      request: {
        definition: resource,
        labelSelector: selectorOf(namesOf(this.#parts.definition)),
        isMetadataOnly: true,
        connection,
      },
      namespaces: namespace === undefined ? undefined : [namespace],
      isInternal: true,
    });
    const nothing = async () => {};
    return {
      source,
      kind: this.#kindOf(removed, { source, cache: source.view, activate: nothing, deactivate: nothing }),
    };
  }

  // Waits for the namespace of the primary only: the watches of other namespaces may fail.
  async #untilKnown(source: KindSource, primary: KubernetesObject, opened: Opened): Promise<void> {
    const { sources } = this.#parts;
    try {
      await sources.register(source, primary);
      // No watch is started after the stop. Objects that are unknown for this reason must not count as deleted.
      const unknown = source.unknownFor(primary);
      if (unknown !== undefined || !source.isPartlySynced)
        throw new Error(unknown ?? `the watch of ${source.view.definition.plural} does not run`);
    } catch (error) {
      if (source.isFailing) {
        opened.failure ??= { error, at: performance.now() };
        await sources.deregister(source.name);
      }
      throw error;
    }
  }

  #kindOf({ resource, cluster }: KindInCluster, source: DependentSource): WatchedKind {
    const known = this.#kinds.get(source.cache);
    if (known !== undefined) return known;
    const removed = { name: "removed", resource: source.cache.definition, dependsOn: [], ...(cluster && { cluster }) };
    const reconcilerOf = (deletion: "ordered" | "orphan") => this.#createReconciler({ ...removed, deletion }, source);
    const reconcilers = { ordered: reconcilerOf("ordered"), orphan: reconcilerOf("orphan") };
    const kind: WatchedKind = { resource, cluster, reconcilers };
    this.#kinds.set(source.cache, kind);
    return kind;
  }

  #clientOf(cluster: string | undefined): ApiClient {
    const { client, clusters } = this.#parts.operator;
    if (cluster === undefined) return client;
    const found = clusters.get(cluster);
    if (found === undefined) throw new Error(`it lived in cluster "${cluster}", which the operator does not know`);
    return found;
  }
}

function seesAllOf(dependent: KubernetesDependent, removed: RemovedDependent): boolean {
  const { eventSource, activationCondition, filters } = dependent;
  const limits = [eventSource, activationCondition, filters];
  return seesRemoved(dependent, removed) && limits.every((limit) => limit === undefined);
}
