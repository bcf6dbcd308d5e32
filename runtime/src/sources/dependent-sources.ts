// Event sources of dependents (JOSDK's EventSourceReferencer), first for Kubernetes dependents, then for external ones. A dependent has its own
// source, shares one with similar dependents, or uses one that the user registered.
import {
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  hasType,
  keyOf,
  kindNameOf,
  nameOfType,
} from "../base/kubernetes-object.js";
import { HELD_INDEX, holdFinalizersIn, linksOf, provenLinkOf } from "../base/primary-link.js";
import type { ProofKey } from "../base/proof-key.js";
import { type ResourceView, viewOf } from "../cache/resource-view.js";
import type { Connection } from "../client/connection.js";
import type { InformerRequest } from "../watch/shared-informers.js";
import { type CachingInboundSourceOptions, cachingInboundSource } from "./caching-inbound-source.js";
import type { EventSource, IndexedPrimaries } from "./event-source.js";
import type { IdOf } from "./external-cache.js";
import type { ExternalSource, FetchContext, MaybePromise } from "./external-source.js";
import { KindSource, type KindSourceOptions } from "./kind-source.js";
import {
  type PerPrimaryPollingSourceOptions,
  type PollingSourceOptions,
  perPrimaryPollingSource,
  pollingSource,
} from "./polling-sources.js";
import type { RegisteredSource } from "./controller-sources.js";

/** What the controller watches for a dependent. */
export interface DependentWatch
  extends
    Pick<KindSourceOptions, "filters" | "mapper" | "namespaces" | "primaryToSecondary">,
    Pick<InformerRequest, "fieldSelector" | "labelSelector"> {
  readonly name: string;
  /** Names of the dependent in earlier versions. */
  readonly movedFrom?: readonly string[] | undefined;
  readonly resource: ResourceDefinition;
  readonly namespace?: string;
  readonly connection?: Connection | undefined;
  /** The name of a user's event source that provides the objects. Default: the dependent has its own source */
  readonly eventSource?: string;
  /** Whether the dependent is read-only: the mapper of the event source finds its objects. */
  readonly isReadOnly?: boolean;
  readonly isActivatedLater: boolean;
}

/** The watch of a dependent with an activation condition, active while any primary needs it. */
export interface ActivatedWatch {
  activate(primary: ObjectKey): Promise<void>;
  deactivate(primary: ObjectKey): Promise<void>;
}

/** The objects known to the watch of a dependent. */
export interface KnownObjects extends ActivatedWatch {
  readonly cache: ResourceView;
  /** The watched namespaces if they differ from those of the controller; `all` for all namespaces. */
  readonly namespaces?: readonly string[] | "all" | undefined;
  /** The index of the cache by links of dependents. Default: `PRIMARY_INDEX` */
  readonly linkIndex?: string;
  /** Returns the objects that the event source maps to a primary. */
  secondariesOf?(primary: KubernetesObject): readonly KubernetesObject[];
  /** Returns the last states of a primary's objects that other clients deleted. */
  lastSeenOf?(primary: KubernetesObject): readonly KubernetesObject[];
  /** Describes unknown objects in a namespace, by default in any; undefined if all are known. The primary is requeued when they become known. */
  unknownIn?(primary: ObjectKey, namespace?: string): string | undefined;
}

/** The event source of a Kubernetes dependent. */
export interface DependentSource extends KnownObjects {
  readonly source: EventSource;
}

// An index by links for sources of the user, whose own mapping may differ.
const LINK_INDEX = "link";

/**
 * Creates the event sources of dependents, each with its dependents. Dependents that watch the same objects share a source, named after the first.
 */
export function groupDependents(
  dependents: readonly DependentWatch[],
): ReadonlyMap<KindSource, readonly DependentWatch[]> {
  const groups = new Map<string, DependentWatch[]>();
  const clusters: (Connection | undefined)[] = [];
  for (const dependent of dependents) {
    const { name, resource, namespace, labelSelector, fieldSelector, isActivatedLater, connection } = dependent;
    if (dependent.eventSource !== undefined) continue;
    if (!clusters.includes(connection)) clusters.push(connection);
    const { mapper, filters, primaryToSecondary } = dependent;
    const isShared = mapper === undefined && filters === undefined && primaryToSecondary === undefined;
    const selectors = [namespace, labelSelector, fieldSelector];
    const scope = [resource.apiVersion, resource.kind, clusters.indexOf(connection), ...selectors, isActivatedLater];
    const key = JSON.stringify(isShared ? scope : [...scope, name]);
    groups.set(key, [...(groups.get(key) ?? []), dependent]);
  }
  return new Map([...groups.values()].map((members) => [createSharedSource(members), members]));
}

function createSharedSource(members: readonly DependentWatch[]): KindSource {
  const { name, resource, namespace, labelSelector, fieldSelector, connection, filters, mapper } = members[0]!;
  const { primaryToSecondary, namespaces = namespace === undefined ? undefined : [namespace] } = members[0]!;
  const isExclusive = members.every(({ isReadOnly = false }) => !isReadOnly);
  const request = { definition: resource, labelSelector, fieldSelector, connection };
  const options = { name, request, namespaces, mapper, primaryToSecondary, filters, isExclusive };
  return new KindSource({ ...options, dependents: members });
}

/** Returns the event source of a dependent. Throws if the dependent cannot use the registered source. */
export function createDependentSource(
  dependent: DependentWatch,
  registered: RegisteredSource,
  { primary, proofKey }: { primary: ResourceDefinition; proofKey?: (() => ProofKey | undefined) | undefined },
): DependentSource {
  const { source, kind, role } = registered;
  const cache = checkShareable(dependent, source);
  // Needed even without heldForCleanup, which an earlier version of the workflow may have set.
  cache.addIndex(HELD_INDEX, holdFinalizersIn);
  const lastSeenOf = (object: KubernetesObject) => kind?.lastSeenOf(object) ?? [];
  const own = {
    source,
    cache,
    lastSeenOf,
    activate: (key: ObjectKey) => registered.activate(dependent.name, key),
    deactivate: (key: ObjectKey) => registered.deactivate(dependent.name, key),
    unknownIn: (key: ObjectKey, namespace?: string) => registered.unknownIn(key, namespace),
  };
  if (role !== "user") return own;
  const reading = {
    ...{ primary, isElsewhere: kind?.connection !== undefined, ...(proofKey && { key: proofKey }) },
    namespaces: dependent.namespace === undefined ? undefined : [dependent.namespace],
  };
  const index = `${LINK_INDEX} ${dependent.name}`;
  cache.addIndex(index, (object) => linksOf(object, reading));
  return {
    ...own,
    // The namespace for "current" is only known once the source has started.
    get namespaces() {
      return kind?.ownNamespaces;
    },
    linkIndex: index,
    lastSeenOf: (object: KubernetesObject) =>
      dependent.isReadOnly === true
        ? lastSeenOf(object)
        : lastSeenOf(object).filter((each) => linksOf(each, reading).includes(provenLinkOf(object))),
    secondariesOf: (object: KubernetesObject) => source.secondariesOf(object) as readonly KubernetesObject[],
  };
}

function checkShareable({ name, resource, isReadOnly = false }: DependentWatch, source: EventSource): ResourceView {
  const fail = (problem: string) =>
    new Error(`dependent "${name}" cannot share event source "${source.name}": ${problem}`);
  if (!hasType(source, resource))
    throw fail(`that is of ${nameOfType(source.type) ?? "no type"}, and the dependent is a ${kindNameOf(resource)}`);
  const view = viewOf(source);
  if (view === undefined) throw fail("that is no informer");
  if (source.activationCondition !== undefined)
    throw fail(
      "that has an activationCondition, and is not always watched; give the condition to the dependent, and let it watch itself",
    );
  if (view.isPartial && !isReadOnly)
    throw fail("that keeps only a part of each object, with which nothing can be compared; give it cache: full");
  return view;
}

// Options that the runtime derives from the dependent.
type OwnOptions = "filters" | "idOf" | "name" | "type";
type FetchOfOne<Primary, Context, Resource> = (primary: Primary, context: Context) => MaybePromise<readonly Resource[]>;

/** Where the resources of an external dependent come from. `Context` is the second argument of `fetch` for one primary. */
export type ExternalOrigin<Primary = KubernetesObject, Context = FetchContext, Resource = unknown> =
  | ({ readonly kind: "poll" } & Omit<PollingSourceOptions<Resource>, OwnOptions>)
  | ({ readonly kind: "perPrimaryPoll"; readonly fetch: FetchOfOne<Primary, Context, Resource> } & Omit<
      PerPrimaryPollingSourceOptions<Resource>,
      OwnOptions | "fetch"
    >)
  | ({ readonly kind: "inbound"; readonly fetch?: FetchOfOne<Primary, Context, Resource> } & Omit<
      CachingInboundSourceOptions<Resource>,
      OwnOptions | "fetch"
    >)
  | { readonly kind: "eventSource"; readonly name: string };

/** What the controller follows for an external dependent. */
export interface ExternalWatch {
  /** The name of the dependent. Also the name and type of its own event source. */
  readonly name: string;
  readonly origin: ExternalOrigin;
  readonly idOf: IdOf<unknown>;
  readonly isActivatedLater: boolean;
  /** Whether the dependent writes resources, so that the event source has to record its writes. */
  readonly isWritten: boolean;
  /** Called before each reconcile of a primary. Resolves with whether its resources have to be fetched again. Default: they do not */
  readonly prepare?: ((primary: KubernetesObject, signal: AbortSignal) => Promise<boolean>) | undefined;
}

/** The event source of an external dependent. */
export type ExternalDependentSource = ReturnType<typeof createExternalDependentSource>;

/** Returns the name of the user's event source that a dependent shares; undefined if it has its own. */
export function sharedBy({ origin }: ExternalWatch): string | undefined {
  return origin.kind === "eventSource" ? origin.name : undefined;
}

/** Creates the source of a dependent; undefined if it shares one of the user. */
export function createExternalSource({
  name,
  origin,
  idOf,
  prepare,
}: ExternalWatch): ExternalSource<unknown> | undefined {
  const own = { name, type: name, idOf };
  if (origin.kind === "eventSource") return undefined;
  if (origin.kind === "poll") return isolated(pollingSource({ ...origin, ...own }, { isAwaited: false }), prepare);
  if (origin.kind === "inbound") return isolated(cachingInboundSource({ ...origin, ...own }), prepare);
  return isolated(perPrimaryPollingSource({ ...origin, ...own }), prepare);
}

/**
 * Returns a source whose `load` never fails: the error of a fetch is thrown when the resources of the primary are read. This way, an unavailable
 * service only fails the dependents that need it.
 */
export function isolated<Source extends ExternalSource<unknown>>(
  source: Source,
  prepare?: ExternalWatch["prepare"],
): Source {
  const failures = new Map<ObjectKey, { readonly error: unknown }>();
  const members: Pick<ExternalSource<unknown>, "load" | "secondariesOf" | "onPrimaryChange" | "stop"> = {
    async load(primary, signal) {
      const key = keyOf(primary.metadata);
      failures.delete(key);
      try {
        if ((await prepare?.(primary, signal)) === true) source.invalidate(key);
        await source.load?.(primary, signal);
      } catch (error) {
        failures.set(key, { error });
      }
    },
    secondariesOf(primary) {
      const failure = failures.get(keyOf(primary.metadata));
      if (failure !== undefined) throw failure.error;
      return source.secondariesOf(primary);
    },
    onPrimaryChange(change) {
      if (change.kind === "deleted") failures.delete(change.key);
      source.onPrimaryChange?.(change);
    },
    stop() {
      failures.clear();
      return source.stop();
    },
  };
  // All other members, including getters, are inherited from the source.
  return Object.assign(Object.create(source) as Source, members);
}

/** Returns the event source of an external dependent for its reconciler. Throws if the dependent cannot use the registered source. */
export function createExternalDependentSource(
  watch: ExternalWatch,
  registered: RegisteredSource,
  primaries: IndexedPrimaries,
) {
  const source = checkRecording(watch, registered.source);
  const { name } = watch;
  return {
    /** Whether other dependents may read its resources as well. */
    isShared: sharedBy(watch) !== undefined,
    secondariesOf: (primary: KubernetesObject) => source.secondariesOf(primary),
    load: async (primary: KubernetesObject, signal: AbortSignal) => source.load?.(primary, signal),
    recordCreated: (...args: Parameters<ExternalSource<unknown>["recordCreated"]>) => source.recordCreated?.(...args),
    recordUpdated: (...args: Parameters<ExternalSource<unknown>["recordUpdated"]>) => source.recordUpdated?.(...args),
    recordDeleted: (...args: Parameters<ExternalSource<unknown>["recordDeleted"]>) => source.recordDeleted?.(...args),
    invalidate: (primary: ObjectKey) => source.invalidate?.(primary),
    /** Starts the source for a primary and fetches its resources. If the fetch fails, its error is thrown when the resources are read. */
    async activate(primary: ObjectKey) {
      await registered.activate(name, primary);
      const object = registered.role === "user" ? undefined : primaries.get(primary)?.object;
      if (object !== undefined) await source.load?.(object, new AbortController().signal);
    },
    deactivate: (primary: ObjectKey) => registered.deactivate(name, primary),
  };
}

function checkRecording(
  { name, isWritten }: ExternalWatch,
  source: EventSource,
): EventSource & Partial<ExternalSource<unknown>> {
  // Checks members instead of the class, because the source may come from another copy of this package.
  const isRecording = ["recordCreated", "recordUpdated", "recordDeleted"].every((member) => member in source);
  if (!isWritten || isRecording) return source;
  throw new Error(
    `dependent "${name}" cannot share event source "${source.name}": that takes no resources of the controller's own (recordCreated, ` +
      "recordUpdated, recordDeleted); use a polling or a caching inbound source, or only read it",
  );
}
