import type { Diagnostic } from "../diagnostic.js";
import type { Crd } from "../read/crd/read-crds.js";
import type { BuiltinKind, BuiltinKinds } from "../read/kinds.js";
import type { ExternalFile } from "../read/read-project.js";
import type {
  ConditionSpec,
  ConditionWord,
  DeletionSpec,
  DependencySpec,
  DependentSpec,
  EventSourceSpec,
  FieldEqualsSpec,
  FilterSpec,
  FiltersSpec,
  MovedSpec,
  RemovedSpec,
  StatusConditionSpec,
  UntypedKindSpec,
  WorkflowSpec,
} from "../read/workflow-spec.js";
import type { Place, YamlDocument, YamlPath } from "../read/yaml/yaml-document.js";
import type { ProjectMemory } from "./project-memory.js";
import {
  type ConditionName,
  type ExpressionName,
  type FilterName,
  type ResourceModel,
  untypedResource,
} from "./project-model.js";

/** A project whose kinds are resolved. Kinds that were not found are absent. */
export interface ResolvedProject {
  readonly catalog: ResourceCatalog;
  readonly controllers: readonly ResolvedController[];
  /** State of the last generation. */
  readonly memory: ProjectMemory;
}

/** A workflow spec with its resolved kinds. */
export interface ResolvedController {
  readonly spec: WorkflowSpec;
  readonly primary?: ResourceModel;
  readonly dependents: readonly ResolvedDependent[];
  readonly eventSources: readonly ResolvedEventSource[];
  readonly removed: readonly ResolvedRemoved[];
}

/** A dependent of a workflow spec with its resolved kind. An external dependent has none. */
export interface ResolvedDependent {
  readonly name: string;
  readonly spec: DependentSpec;
  readonly path: YamlPath;
  readonly resource?: ResourceModel;
  /** The kind whose objects store the ids of an external dependent. */
  readonly stateResource?: ResourceModel;
  /** The file with the type or schema of an external dependent; absent if the spec names none. */
  readonly file?: ExternalFile;
  /** The file with the type of the desired resource. */
  readonly desiredFile?: ExternalFile;
  /** The file with the type of the stored state. */
  readonly stateFile?: ExternalFile;
  /** True if its event source is shared with other dependents, and no state identifies its resources. */
  readonly isSelected?: boolean;
}

/** A removed dependent with its resolved kind. */
export interface ResolvedRemoved {
  readonly name: string;
  readonly spec: RemovedSpec;
  readonly path: YamlPath;
  readonly resource?: ResourceModel;
}

/** Returns the name of a dependency. */
export function nameOfDependency(dependency: DependencySpec): string {
  return typeof dependency === "string" ? dependency : dependency.name;
}

type NamedSpec = Pick<ResolvedDependent, "name" | "spec">;

/** Returns all dependencies of each dependent, including optional ones and those of items. */
export function edgesOf(dependents: readonly NamedSpec[]): Map<string, string[]> {
  return new Map(
    dependents.map(({ name, spec: { dependsOn = [], itemsDependOn = [] } }) => [
      name,
      [...dependsOn.map(nameOfDependency), ...itemsDependOn],
    ]),
  );
}

/** Returns the required dependencies of each dependent. A dependent is deleted when one of them becomes inactive. */
export function requiredEdgesOf(dependents: readonly NamedSpec[]): Map<string, string[]> {
  return new Map(
    dependents.map(({ name, spec: { dependsOn = [], itemsDependOn = [] } }) => [
      name,
      [...dependsOn.filter((each) => typeof each === "string"), ...itemsDependOn],
    ]),
  );
}

/** A name in `dependsOn` or `itemsDependOn`, with its path. */
interface LocatedDependency {
  readonly list: "dependsOn" | "itemsDependOn";
  readonly name: string;
  readonly isOptional: boolean;
  readonly path: YamlPath;
}

/** Returns the dependencies of a dependent as written in the spec. */
export function dependenciesOf({ spec, path }: Pick<ResolvedDependent, "spec" | "path">): LocatedDependency[] {
  return (["dependsOn", "itemsDependOn"] as const).flatMap((list) =>
    (spec[list] ?? []).map((each, index) => ({
      list,
      name: nameOfDependency(each),
      isOptional: typeof each !== "string",
      path: [...path, list, index, ...(typeof each === "string" ? [] : ["name"])],
    })),
  );
}

/** Returns the deletion of a dependent, with its default. Owner references cannot refer to a primary in another cluster. */
export function deletionOf({ deletion, cluster }: DependentSpec): DeletionSpec {
  return deletion ?? (cluster === undefined ? "garbageCollected" : "ordered");
}

/** Returns whether a dependent is garbage-collected with its primary. */
export function isCollected(spec: DependentSpec): boolean {
  return spec.external === undefined && spec.mode !== "readOnly" && deletionOf(spec) === "garbageCollected";
}

/** Returns whether the operator deletes a dependent during cleanup. */
export function isDeletedByOperator(spec: DependentSpec): boolean {
  if (spec.external !== undefined) return spec.external.capabilities?.includes("delete") ?? true;
  return spec.mode !== "readOnly" && spec.operations?.delete !== false && deletionOf(spec) === "ordered";
}

/** An event source of a workflow spec, with its resolved kind if it watches one. */
export interface ResolvedEventSource {
  readonly name: string;
  readonly spec: EventSourceSpec;
  readonly path: YamlPath;
  readonly resource?: ResourceModel;
}

/** Returns the `about` value of warnings about a dependent, with which the dependent can accept them. */
export function subjectOf({ spec }: ResolvedController, { name }: { readonly name: string }): string {
  return `${spec.name}/${name}`;
}

/** Checks a rule. */
export type Check = (project: ResolvedProject) => Diagnostic[];

/** Returns a check of a rule that concerns each controller separately. */
export function checkOfController(
  check: (controller: ResolvedController, project: ResolvedProject) => Diagnostic[],
): Check {
  return (project) => project.controllers.flatMap((controller) => check(controller, project));
}

/** A filter of a primary, a dependent, or an event source, with its path. */
interface LocatedFilter {
  readonly name: FilterName;
  readonly filter: FilterSpec;
  readonly path: YamlPath;
}

/** Names that the expression of each filter may use, in the order of the arguments. */
export const FILTER_ARGUMENTS: { readonly [K in FilterName]: readonly ExpressionName[] } = {
  onAdd: ["object"],
  onUpdate: ["object", "old"],
  onDelete: ["object", "isFinalStateUnknown"],
  generic: ["object"],
};

/** Returns the filters at a path of a spec. */
export function filtersIn(filters: FiltersSpec = {}, path: YamlPath): LocatedFilter[] {
  return (Object.keys(FILTER_ARGUMENTS) as FilterName[]).flatMap((name) => {
    const filter = filters[name];
    return filter === undefined ? [] : [{ name, filter, path: [...path, "filters", name] }];
  });
}

export function filtersOf({ spec, dependents, eventSources }: ResolvedController): LocatedFilter[] {
  return [
    ...filtersIn(spec.controller.filters, ["spec", "controller"]),
    ...[...dependents, ...eventSources].flatMap((member) => filtersIn(member.spec.filters, member.path)),
  ];
}

/** A user function of an event source, with the path of its name. */
interface LocatedFunction {
  readonly name: string;
  readonly path: YamlPath;
}

/** Returns the functions in the user's file of an event source. */
export function functionsOf({ spec: { mapping, primaryToSecondary }, path }: ResolvedEventSource): LocatedFunction[] {
  const mapper = typeof mapping === "object" ? mapping.function : undefined;
  return [
    ...(mapper === undefined ? [] : [{ name: mapper, path: [...path, "mapping", "function"] }]),
    ...(primaryToSecondary === undefined
      ? []
      : [{ name: primaryToSecondary.function, path: [...path, "primaryToSecondary", "function"] }]),
  ];
}

/** A condition of a spec, independent of its notation. */
type StatedCondition =
  | { readonly kind: "when"; readonly expression: string }
  | { readonly kind: "function"; readonly name: string }
  | StatedBuiltin;

/** A built-in condition of a spec. */
export type StatedBuiltin =
  | { readonly kind: "builtin"; readonly name: Exclude<ConditionWord, "crdPresent"> }
  | StatedPresence
  | { readonly kind: "builtin"; readonly name: "condition"; readonly status: StatusConditionSpec }
  | { readonly kind: "builtin"; readonly name: "fieldEquals"; readonly field: FieldEqualsSpec };

/** `crdPresent`, or its negation. */
interface StatedPresence {
  readonly kind: "builtin";
  readonly name: "crdPresent";
  /** Default: the kind of the dependent or event source */
  readonly of?: string | UntypedKindSpec;
  readonly isNegated?: true;
}

/** A condition of a dependent, with its path. */
export interface LocatedCondition {
  readonly name: ConditionName;
  readonly condition: StatedCondition;
  /** Path of the name of the condition, or of the value of its key. */
  readonly path: YamlPath;
}

const CONDITIONS: readonly ConditionName[] = [
  "activationCondition",
  "reconcilePrecondition",
  "existing",
  "readyPostcondition",
  "deletePostcondition",
];

/** Returns the conditions of a dependent in the order of their evaluation. */
export function conditionsOf({ spec, path }: Pick<ResolvedDependent, "spec" | "path">): LocatedCondition[] {
  return CONDITIONS.flatMap((name) => {
    const stated = spec[name];
    if (stated === undefined || stated === "refuse" || stated === "adopt") return [];
    const keys = typeof stated === "string" ? [] : Object.keys(stated);
    return [{ name, condition: conditionOf(stated), path: [...path, name, ...keys] }];
  });
}

export function activationOf({ spec }: Pick<ResolvedEventSource, "spec">): StatedPresence | undefined {
  const { activationCondition } = spec;
  return activationCondition === undefined ? undefined : (conditionOf(activationCondition) as StatedPresence);
}

/** A kind that a `crdPresent` condition names, with its path. */
interface LocatedKind {
  readonly kind: string | UntypedKindSpec;
  readonly path: YamlPath;
}

/** Returns the kinds that the conditions of a controller name by `crdPresent: { of: … }`. */
export function presentKindsOf({ dependents, eventSources }: ResolvedController): LocatedKind[] {
  return [
    ...dependents.flatMap((dependent) => conditionsOf(dependent)),
    ...eventSources.flatMap((source) => {
      const condition = activationOf(source);
      const path = [...source.path, "activationCondition"];
      return condition === undefined ? [] : [{ condition, path: condition.isNegated ? [...path, "not"] : path }];
    }),
  ].flatMap(({ condition, path }) => {
    if (condition.kind !== "builtin" || condition.name !== "crdPresent" || condition.of === undefined) return [];
    const own = path.at(-1) === "crdPresent" ? path : [...path, "crdPresent"];
    return [{ kind: condition.of, path: [...own, "of"] }];
  });
}

function conditionOf(spec: ConditionSpec): StatedCondition {
  if (typeof spec === "string") return { kind: "builtin", name: spec };
  if ("not" in spec) return { ...(conditionOf(spec.not) as StatedPresence), isNegated: true };
  if ("crdPresent" in spec) return { kind: "builtin", name: "crdPresent", of: spec.crdPresent.of };
  if ("when" in spec) return { kind: "when", expression: spec.when };
  if ("function" in spec) return { kind: "function", name: spec.function };
  if ("condition" in spec) return { kind: "builtin", name: "condition", status: spec.condition };
  return { kind: "builtin", name: "fieldEquals", field: spec.fieldEquals };
}

/** Returns the position of the name or key of a condition. */
export function placeOfCondition({ name, path }: LocatedCondition, document: YamlDocument): Place {
  return path.at(-1) === name ? document.valueAt(path) : document.keyAt(path);
}

/** A kind as in a spec: `apps/v1/Deployment`, or `v1/ConfigMap` for the core group. */
export interface KindName {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** All kinds that a project can use. */
export interface ResourceCatalog {
  /** All versions of the CRDs of the project, and kinds that the project describes without a CRD. */
  readonly custom: readonly ResourceModel[];
  /** Files of the CRDs. */
  readonly crdFiles: readonly string[];
  /** Names of all kinds that `find` resolves. */
  readonly names: readonly string[];
  find(name: KindName): ResourceModel | undefined;
  /** Returns the model of an untyped kind. */
  untyped(spec: UntypedKindSpec): ResourceModel;
  /** Returns the verbs that the API server supports for a kind; undefined for kinds of CRDs and untyped kinds. */
  verbsOf(resource: ResourceModel): readonly string[] | undefined;
}

/** Builds the catalog of a project. Repeated lookups of a kind return the same object. */
export function buildCatalog(crds: readonly Crd[], builtin: BuiltinKinds): ResourceCatalog {
  const described = builtin.kinds.filter(({ file }) => file !== undefined);
  const describedResources = described.map((kind) => resourceOfBuiltin(kind, builtin.definitions));
  const custom = [...crds.flatMap(resourcesOfCrd), ...describedResources];
  const known = new Map(custom.map((resource) => [formatKind(resource), resource]));
  const builtinByName = new Map(builtin.kinds.map((kind) => [formatKind(kind), kind]));
  const verbs = new Map(describedResources.map((resource, index) => [resource, described[index]?.verbs ?? []]));
  const untyped = new Map<string, ResourceModel>();
  return {
    custom,
    crdFiles: [...new Set(crds.map(({ file }) => file))].sort(),
    names: [...new Set([...known.keys(), ...builtinByName.keys()])],
    find(name) {
      const text = formatKind(name);
      const found = known.get(text);
      if (found !== undefined) return found;
      const kind = builtinByName.get(text);
      if (kind === undefined) return undefined;
      const resource = resourceOfBuiltin(kind, builtin.definitions);
      known.set(text, resource);
      verbs.set(resource, kind.verbs);
      return resource;
    },
    untyped(spec) {
      const text = [spec.apiVersion, spec.kind, spec.plural, spec.scope].join("/");
      const found = untyped.get(text) ?? untypedResource(spec);
      untyped.set(text, found);
      return found;
    },
    verbsOf: (resource) => verbs.get(resource),
  };
}

/** Formats a kind as in a spec. */
export function formatKind({ group, version, kind }: KindName): string {
  return [...(group === "" ? [] : [group]), version, kind].join("/");
}

/** Parses a kind that the schema of specs has validated. */
export function parseKind(text: string): KindName {
  const [kind = "", version = "", group = ""] = text.split("/").reverse();
  return { group, version, kind };
}

function resourcesOfCrd(crd: Crd): ResourceModel[] {
  const { group, kind, plural, singular, listKind, scope, file, digest } = crd;
  const definitions: ResourceModel["definitions"] = new Map();
  return crd.versions.map((crdVersion) => {
    const { name, isServed, isStorage, hasStatusSubresource, scale, selectableFields, deprecationWarning } = crdVersion;
    return Object.freeze({
      ...{ group, version: name, kind, plural, singular, listKind, scope },
      ...{ hasStatusSubresource, isCustom: true, isStorage, isServed },
      ...(scale === undefined ? {} : { scale }),
      selectableFields: selectorFieldsOf(selectableFields, scope === "Namespaced"),
      ...(deprecationWarning === undefined ? {} : { deprecationWarning }),
      ...{ definitions, crdFile: file },
      ...(digest === undefined ? {} : { digest }),
      // Read the schema lazily: an unchanged CRD need not be parsed.
      get schema() {
        return crdVersion.schema;
      },
      get crd() {
        return crd.document;
      },
    });
  });
}

function resourceOfBuiltin(builtin: BuiltinKind, definitions: ResourceModel["definitions"]): ResourceModel {
  const { group, version, kind, plural, singular, scope, hasStatusSubresource, selectableFields, schema } = builtin;
  // The API server also accepts metadata.namespace for cluster-scoped kinds, unless the kind has its own list of selectable fields.
  const hasNamespace = scope === "Namespaced" || selectableFields.length === 0;
  return Object.freeze({
    ...{ group, version, kind, plural, singular, listKind: `${kind}List`, scope, hasStatusSubresource },
    ...{ isCustom: false, isStorage: true, isServed: true, schema, definitions },
    ...(builtin.file === undefined ? {} : { isDescribed: true }),
    selectableFields: selectorFieldsOf(selectableFields, hasNamespace),
  });
}

function selectorFieldsOf(own: readonly string[], hasNamespace: boolean): readonly string[] {
  return Object.freeze(["metadata.name", ...(hasNamespace ? ["metadata.namespace"] : []), ...own]);
}

/** The dependencies of each name. */
export type DependencyGraph = ReadonlyMap<string, readonly string[]>;

/** Sorts the names topologically, dependencies first. Otherwise their order is preserved. */
export function sortGraph(graph: DependencyGraph): string[] {
  const sorted = new Set<string>();
  const waiting = new Set(graph.keys());
  while (waiting.size > 0) {
    const next = [...waiting].find((name) => neighboursOf(graph, name).every((other) => sorted.has(other)));
    if (next === undefined) throw new Error("a graph with a cycle has no order");
    sorted.add(next);
    waiting.delete(next);
  }
  return [...sorted];
}

/** Returns the transitive dependencies of a name. */
export function reachableFrom(graph: DependencyGraph, name: string): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = [...neighboursOf(graph, name)];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    waiting.push(...neighboursOf(graph, next));
  }
  return reached;
}

/**
 * Returns a shortest cycle through each group of names that depend on each other, starting with the name that comes first in the graph.
 *
 * The first name is repeated at the end: `["a", "b", "a"]`.
 */
export function findCycles(graph: DependencyGraph): string[][] {
  const seen = new Set<string>();
  const cycles: string[][] = [];
  for (const name of graph.keys()) {
    if (seen.has(name)) continue;
    const cycle = shortestCycle(graph, name);
    if (cycle === undefined) continue;
    cycles.push(cycle);
    // Skip other cycles in the group: they disappear, or are reported once this one is resolved.
    const reached = reachableFrom(graph, name);
    for (const other of reached) if (reachableFrom(graph, other).has(name)) seen.add(other);
  }
  return cycles;
}

function shortestCycle(graph: DependencyGraph, start: string): string[] | undefined {
  const paths: string[][] = [[start]];
  const visited = new Set<string>();
  for (const path of paths) {
    for (const next of neighboursOf(graph, path.at(-1) ?? start)) {
      if (next === start) return [...path, start];
      if (visited.has(next)) continue;
      visited.add(next);
      paths.push([...path, next]);
    }
  }
  return undefined;
}

// Another rule reports unknown names.
function neighboursOf(graph: DependencyGraph, name: string): readonly string[] {
  return (graph.get(name) ?? []).filter((other) => graph.has(other));
}

/** Returns the current name of each former name, following repeated renames. */
export function presentNames(moved: readonly MovedSpec[]): ReadonlyMap<string, string> {
  const next = new Map(moved.map(({ from, to }) => [from, to]));
  return new Map(
    moved.map(({ from }) => {
      const seen = new Set<string>();
      let name = from;
      for (let to = next.get(name); to !== undefined && !seen.has(to); to = next.get(name)) seen.add((name = to));
      return [from, name];
    }),
  );
}

/** Returns the former names of a dependent, the most recent first. */
export function formerNamesOf(name: string, moved: readonly MovedSpec[]): string[] {
  const present = presentNames(moved);
  return moved.flatMap(({ from }) => (present.get(from) === name ? from : [])).reverse();
}
