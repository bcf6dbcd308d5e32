import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";
import { DEPENDENT_NAME, HELD_INDEX, holdFinalizersIn, linksOf, provenLinkOf } from "../../base/primary-link.js";
import type { ProofKey } from "../../base/proof-key.js";
import { kindNameOf, type ResourceDefinition, hasType, nameOfType } from "../../base/resource-definition.js";
import type { Connection } from "../../client/connect/connection.js";
import type { EventSource } from "../event-source.js";
import type { InformerRequest } from "../../watch/informer-pool.js";
import { viewOf, type ResourceView } from "../../cache/resource-view.js";
import type { RegisteredSource } from "../registered-source.js";
import { KindSource, type KindSourceOptions } from "./kind-source.js";

/** What a controller wants to know of one of its dependents. */
export interface DependentWatch
  extends
    Pick<KindSourceOptions, "filters" | "mapper" | "namespaces" | "primaryToSecondary">,
    Pick<InformerRequest, "fieldSelector" | "labelSelector"> {
  readonly name: string;
  /** The names that it had in earlier versions. */
  readonly movedFrom?: readonly string[] | undefined;
  readonly resource: ResourceDefinition;
  readonly namespace?: string;
  readonly connection?: Connection | undefined;
  /** The name of the event source that knows its objects, instead of one of its own. */
  readonly eventSource?: string;
  /** Whether its objects are somebody else's: then the mapper of the event source finds them. */
  readonly isReadOnly?: boolean;
  readonly isActivatedLater: boolean;
}

/** How a dependent knows its objects. */
export interface DependentSource {
  readonly source: EventSource;
  readonly cache: ResourceView;
  /** The namespaces that it knows, where these are not those of the controller; "all" for all of them. */
  readonly namespaces?: readonly string[] | "all" | undefined;
  /** The index of the cache that finds the objects which are tied to a primary as dependents are. Default: `PRIMARY_INDEX` */
  readonly linkIndex?: string;
  /** Returns the objects that belong to a primary, by the mapping of the event source. */
  secondariesOf?(primary: KubernetesObject): readonly KubernetesObject[];
  /** Returns the last states of the objects that are tied to a primary, and that other clients deleted. */
  lastSeenOf?(primary: KubernetesObject): readonly KubernetesObject[];
  activate(primary: ObjectKey): Promise<void>;
  deactivate(primary: ObjectKey): Promise<void>;
  /**
   * Says what is not known of the objects of a namespace, or of any without one; undefined if all is. The primary is reconciled when that
   * becomes known.
   */
  unknownIn?(primary: ObjectKey, namespace?: string): string | undefined;
}

// The objects that are tied to a primary, in a source of the user that may map by something else.
const LINK_INDEX = "link";

/** Creates the event sources of dependents, each with those that it is of: those that differ in nothing share one, named after the first. */
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
  return new Map([...groups.values()].map((members) => [createSourceOf(members), members]));
}

function createSourceOf(members: readonly DependentWatch[]): KindSource {
  const { name, resource, namespace, labelSelector, fieldSelector, connection, filters, mapper } = members[0]!;
  const { primaryToSecondary, namespaces = namespace === undefined ? undefined : [namespace] } = members[0]!;
  const isExclusive = members.every(({ isReadOnly = false }) => !isReadOnly);
  const request = { definition: resource, labelSelector, fieldSelector, connection };
  const dependentOf = ({ metadata }: KubernetesObject) => {
    const stated = metadata.annotations?.[DEPENDENT_NAME];
    // One that the workflow no longer has keeps its name.
    return members.find(({ movedFrom }) => movedFrom?.some((name) => name === stated))?.name ?? stated;
  };
  return new KindSource({ name, request, namespaces, mapper, primaryToSecondary, filters, dependentOf, isExclusive });
}

/** Returns how a dependent knows its objects; throws if it cannot have the event source that it wants to share. */
export function createDependentSource(
  dependent: DependentWatch,
  registered: RegisteredSource,
  { primary, proofKey }: { primary: ResourceDefinition; proofKey?: (() => ProofKey | undefined) | undefined },
): DependentSource {
  const { source, role } = registered;
  const cache = checkShared(dependent, source);
  // Also without heldForCleanup: an earlier version of the workflow may have had it.
  cache.addIndex(HELD_INDEX, holdFinalizersIn);
  const lastSeenOf = (object: KubernetesObject) => (source as Partial<KindSource>).lastSeenOf?.(object) ?? [];
  const own = {
    source,
    cache,
    lastSeenOf,
    activate: (key: ObjectKey) => registered.activate(dependent.name, key),
    deactivate: (key: ObjectKey) => registered.deactivate(dependent.name, key),
    unknownIn: (key: ObjectKey, namespace?: string) => {
      const unknown = (source as Partial<KindSource>).unknownIn?.(namespace);
      if (unknown !== undefined) registered.refuse(key);
      return unknown;
    },
  };
  if (role !== "user") return own;
  const { connection } = source as Partial<KindSource>;
  const reading = {
    ...{ primary, isElsewhere: connection !== undefined, ...(proofKey && { key: proofKey }) },
    namespaces: dependent.namespace === undefined ? undefined : [dependent.namespace],
  };
  const index = `${LINK_INDEX} ${dependent.name}`;
  cache.addIndex(index, (object) => linksOf(object, reading));
  return {
    ...own,
    // What "current" stands for is known when the source runs.
    get namespaces() {
      return (source as Partial<KindSource>).ownNamespaces;
    },
    linkIndex: index,
    lastSeenOf: (object: KubernetesObject) =>
      dependent.isReadOnly === true
        ? lastSeenOf(object)
        : lastSeenOf(object).filter((each) => linksOf(each, reading).includes(provenLinkOf(object))),
    secondariesOf: (object: KubernetesObject) => source.secondariesOf(object) as readonly KubernetesObject[],
  };
}

function checkShared({ name, resource, isReadOnly = false }: DependentWatch, source: EventSource): ResourceView {
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
