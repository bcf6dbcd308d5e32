import type { KubernetesObject } from "../base/kubernetes-object.js";
import { selectorOf } from "../base/primary-link.js";
import { isReachable } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import { dependentsOf, namesOf, type ControllerDefinition } from "../reconcile/controller-definition.js";
import type { DependentSource } from "../sources/kind/dependent-source.js";
import { KindSource } from "../sources/kind/kind-source.js";
import {
  isKubernetes,
  type KubernetesDependent,
  type RemovedDependent,
} from "../workflow/definition/workflow-definition.js";
import { seesRemoved, type RemovedKinds, type WatchedKind } from "../workflow/prune/leftovers.js";
import type { ReconcilerFactory, ReconcilerParts } from "./dependent-reconcilers.js";

const NOT_SERVED = new Error("its kind is not served");

// A watch that failed is not begun again by every reconcile.
const TRY_AGAIN_AFTER_MS = 10_000;

/** A kind that only `removed` names. */
interface OpenedKind {
  readonly kind: WatchedKind;
  readonly source: KindSource;
}

interface Opened {
  readonly kind: Promise<OpenedKind>;
  failure?: { readonly error: unknown; readonly at: number };
}

/**
 * Where objects of a controller may be that no dependent wants: in the watches of its dependents, and in watches of metadata alone for the
 * kinds that the workflow names as removed. Such a watch begins with the first reconcile and lasts until the controller stops.
 */
export class RemovedDependents implements RemovedKinds {
  readonly watched: readonly WatchedKind[];
  readonly #definition: ControllerDefinition;
  readonly #parts: ReconcilerParts;
  readonly #createReconciler: ReconcilerFactory;
  /** The watch of a dependent shows what other dependents of the kind left as well. */
  readonly #dependents: readonly { readonly dependent: KubernetesDependent; readonly source: DependentSource }[];
  readonly #kinds = new Map<DependentSource["cache"], WatchedKind>();
  readonly #opened = new Map<string, Opened>();

  constructor(definition: ControllerDefinition, parts: ReconcilerParts, createReconciler: ReconcilerFactory) {
    this.#definition = definition;
    this.#parts = parts;
    this.#createReconciler = createReconciler;
    this.#dependents = dependentsOf(definition)
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
      // A kind that does not exist has no objects.
      if (error !== NOT_SERVED) throw error;
      opened.failure ??= { error, at: performance.now() };
      return undefined;
    }
  }

  async #watch(name: string, removed: RemovedDependent): Promise<OpenedKind> {
    const { resource, namespace, cluster } = removed;
    const client = this.#clientOf(cluster);
    const isElsewhere = cluster !== undefined;
    // Nobody has to install what is looked for only to be removed, so no watch of it may complain.
    if (!isReachable(resource, await client.servedVersions(resource))) throw NOT_SERVED;
    const connection = isElsewhere ? client.connection : undefined;
    const source = new KindSource({
      name: `removed ${name} (${resource.plural})`,
      request: {
        definition: resource,
        labelSelector: selectorOf(namesOf(this.#definition)),
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

  // The watches of other namespaces may fail.
  async #untilKnown(source: KindSource, primary: KubernetesObject, opened: Opened): Promise<void> {
    const { sources } = this.#parts;
    try {
      await sources.register(source, primary);
      // After the stop nothing is started any more, and what is not known must not be taken for gone.
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

  #kindOf(
    { resource, cluster }: Pick<KubernetesDependent, "resource" | "cluster">,
    source: DependentSource,
  ): WatchedKind {
    const known = this.#kinds.get(source.cache);
    if (known !== undefined) return known;
    const removed = { name: "removed", resource: source.cache.definition, dependsOn: [], ...(cluster && { cluster }) };
    const reconcilerOf = (deletion: "ordered" | "orphan") => this.#createReconciler({ ...removed, deletion }, source);
    const reconcilers = { ordered: reconcilerOf("ordered"), orphan: reconcilerOf("orphan") };
    const kind: WatchedKind = { resource, cluster, reconcilerFor: (deletion) => reconcilers[deletion] };
    this.#kinds.set(source.cache, kind);
    return kind;
  }

  #clientOf(cluster: string | undefined): ApiClient {
    const { client, clusters } = this.#parts;
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
