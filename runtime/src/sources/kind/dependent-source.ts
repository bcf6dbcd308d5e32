import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";
import { DEPENDENT_NAME } from "../../base/primary-link.js";
import { kindNameOf, type ResourceDefinition, hasType, nameOfType } from "../../base/resource-definition.js";
import type { Connection } from "../../client/connect/connection.js";
import type { Activation } from "../activation.js";
import type { EventSource } from "../event-source.js";
import type { ResourceView } from "../../cache/resource-view.js";
import { byAnyLink, byDefaultAnnotations } from "../mappers.js";
import { KindSource, type KindSourceOptions } from "./kind-source.js";

/** What a controller wants to know of one of its dependents. */
export interface DependentWatch extends Pick<KindSourceOptions, "mapper" | "filters"> {
  readonly name: string;
  readonly resource: ResourceDefinition;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** The cluster of its objects. Default: that of the operator. */
  readonly connection?: Connection | undefined;
  /** The name of the event source that knows its objects, instead of one of its own. */
  readonly eventSource?: string;
  /** Whether its objects are somebody else's: then the mapper of the event source finds them. */
  readonly isReadOnly?: boolean;
  /** Whether the watch starts only when it is activated. */
  readonly isActivatedLater: boolean;
}

/** Watches one dependent, or several that look at the same objects. */
export interface DependentSource {
  readonly cache: ResourceView;
  /** The namespaces that it knows, where these are not those of the controller; "all" for all of them. */
  readonly namespaces?: readonly string[] | "all" | undefined;
  /** What knows the objects. */
  readonly source: EventSource;
  /** Returns the keys of the objects that are tied to a primary as dependents are. */
  tiedTo?(primary: ObjectKey): ReadonlySet<ObjectKey>;
  /** Returns the objects that belong to a primary, by the mapping of the event source. */
  secondariesOf?(primary: KubernetesObject): readonly KubernetesObject[];
  /** Starts watching for a primary; resolves when the state is known, and throws if that fails now. */
  activate(primary: ObjectKey): Promise<void>;
  /** Stops watching for a primary; with the last one the state is forgotten. */
  deactivate(primary: ObjectKey): Promise<void>;
}

/** Dependents that look at the same objects, and the event source that watches those. */
export interface DependentGroup {
  /** Has the name of the first member. */
  readonly source: KindSource;
  readonly members: readonly DependentWatch[];
}

// The objects that are tied to a primary, in a source of the user that may map by something else.
const LINK_INDEX = "link";

/** Creates the event sources of dependents: those that differ in nothing share one. */
export function groupDependents(dependents: readonly DependentWatch[], primary: ResourceDefinition): DependentGroup[] {
  const groups = new Map<string, { source: KindSource; members: DependentWatch[] }>();
  const clusters: Connection[] = [];
  for (const dependent of dependents) {
    const { name, resource, namespace, labelSelector, fieldSelector, isActivatedLater, filters } = dependent;
    const { connection, eventSource, mapper = connection && byDefaultAnnotations({ definition: primary }) } = dependent;
    if (eventSource !== undefined) continue;
    if (connection !== undefined && !clusters.includes(connection)) clusters.push(connection);
    const isShared = dependent.mapper === undefined && filters === undefined;
    const cluster = connection === undefined ? -1 : clusters.indexOf(connection);
    const selectors = [namespace, labelSelector, fieldSelector];
    const scope = [resource.apiVersion, resource.kind, cluster, ...selectors, isActivatedLater];
    const key = JSON.stringify(isShared ? scope : [...scope, name]);
    const group = groups.get(key);
    if (group !== undefined) {
      group.members.push(dependent);
      continue;
    }
    const request = { definition: resource, labelSelector, fieldSelector, connection };
    const namespaces = namespace === undefined ? ("sameAsController" as const) : [namespace];
    const members = [dependent];
    const dependentOf = ({ metadata }: KubernetesObject) =>
      members.find((member) => member.name === metadata.annotations?.[DEPENDENT_NAME])?.name;
    const source = new KindSource({ name, request, namespaces, mapper, filters, dependentOf });
    groups.set(key, { source, members });
  }
  return [...groups.values()];
}

/** Finds the event sources of a controller by their names, or those of their dependents. */
export interface NamedSources {
  get(name: string): EventSource | undefined;
  names(): readonly string[];
}

/** What the source of a dependent is made of. */
export interface DependentSourceFacts {
  /** The kind of the primaries. */
  readonly primary: ResourceDefinition;
  readonly sources: NamedSources;
  /** Returns what runs a source of dependents; undefined for a source of the user. */
  activationOf(source: EventSource): Activation | undefined;
}

/**
 * Returns how a dependent knows its objects; a watch runs as long as one primary needs it for one of its dependents. Throws if the dependent
 * cannot have the event source that it wants to share.
 */
export function createDependentSource(
  dependent: DependentWatch,
  { primary, sources, activationOf }: DependentSourceFacts,
): DependentSource {
  const { name, eventSource } = dependent;
  const source = sharedSource(name, { wanted: eventSource ?? name, sources });
  const activation = activationOf(source);
  if (activation === undefined) return createSharedSource(dependent, source, primary);
  return {
    source,
    cache: checkShared(dependent, source),
    activate: (key) => activation.activate(name, key),
    deactivate: (key) => activation.deactivate(name, key),
  };
}

/** Returns the event source that a dependent looks at; throws if there is none. */
export function sharedSource(
  dependent: string,
  { wanted, sources }: { readonly wanted: string; readonly sources: NamedSources },
): EventSource {
  const source = sources.get(wanted);
  if (source !== undefined) return source;
  const all = sources.names().join(", ") || "none";
  throw new Error(`dependent "${dependent}" shares event source "${wanted}", which does not exist; there are ${all}`);
}

// A source of the user runs whether or not a dependent is active.
function createSharedSource(
  dependent: DependentWatch,
  source: EventSource,
  primary: ResourceDefinition,
): DependentSource {
  const view = checkShared(dependent, source);
  const { connection, namespaces } = source as Partial<KindSource>;
  const definition = { definition: primary };
  view.addIndex(LINK_INDEX, connection === undefined ? byAnyLink(definition) : byDefaultAnnotations(definition));
  return {
    source,
    cache: view,
    namespaces: namespaces === "sameAsController" ? undefined : namespaces,
    tiedTo: (key) => view.keysByIndex(LINK_INDEX, key),
    secondariesOf: (object) => source.secondariesOf(object) as readonly KubernetesObject[],
    activate: async () => {},
    deactivate: async () => {},
  };
}

function checkShared({ name, resource, isReadOnly = false }: DependentWatch, source: EventSource): ResourceView {
  const fail = (problem: string) =>
    new Error(`dependent "${name}" cannot share event source "${source.name}": ${problem}`);
  if (!hasType(source, resource))
    throw fail(`that is of ${nameOfType(source.type) ?? "no type"}, and the dependent is a ${kindNameOf(resource)}`);
  const { view } = source;
  if (view === undefined) throw fail("that is no informer");
  if (view.isPartial && !isReadOnly)
    throw fail('that keeps only a part of each object, with which nothing can be compared; give it the form "full"');
  return view;
}
