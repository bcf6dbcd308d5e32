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

/** A project whose names of kinds were looked up; kinds that were not found are left out. */
export interface ResolvedProject {
  readonly catalog: ResourceCatalog;
  readonly controllers: readonly ResolvedController[];
  /** What there was before. */
  readonly memory: ProjectMemory;
}

/** A workflow spec with its kinds. */
export interface ResolvedController {
  readonly spec: WorkflowSpec;
  readonly primary?: ResourceModel;
  readonly dependents: readonly ResolvedDependent[];
  readonly eventSources: readonly ResolvedEventSource[];
  readonly removed: readonly ResolvedRemoved[];
}

/** A dependent of a workflow spec with its kind; an external one has none. */
export interface ResolvedDependent {
  readonly name: string;
  readonly spec: DependentSpec;
  readonly path: YamlPath;
  readonly resource?: ResourceModel;
  /** The kind in whose objects the ids of an external dependent are kept. */
  readonly stateResource?: ResourceModel;
  /** What the file of an external dependent says; absent if it names none. */
  readonly file?: ExternalFile;
  /** The same for the file with the type of the desired state. */
  readonly desiredFile?: ExternalFile;
  /** The same for the file with the type of what is kept. */
  readonly stateFile?: ExternalFile;
  /** Whether other dependents take their resources from its event source, too, and nothing else tells which are its own. */
  readonly isSelected?: boolean;
}

/** A dependent of an earlier version with its kind. */
export interface ResolvedRemoved {
  readonly name: string;
  readonly spec: RemovedSpec;
  readonly path: YamlPath;
  readonly resource?: ResourceModel;
}

/** Returns the name of what a dependent waits for. */
export function nameOfDependency(dependency: DependencySpec): string {
  return typeof dependency === "string" ? dependency : dependency.name;
}

type NamedSpec = Pick<ResolvedDependent, "name" | "spec">;

/** Returns what each dependent comes after: what it waits for as a whole, and what its items wait for. */
export function edgesOf(dependents: readonly NamedSpec[]): Map<string, string[]> {
  return new Map(
    dependents.map(({ name, spec: { dependsOn = [], itemsDependOn = [] } }) => [
      name,
      [...dependsOn.map(nameOfDependency), ...itemsDependOn],
    ]),
  );
}

/** Returns what each dependent cannot exist without: it is deleted when that is not wanted. */
export function requiredEdgesOf(dependents: readonly NamedSpec[]): Map<string, string[]> {
  return new Map(
    dependents.map(({ name, spec: { dependsOn = [], itemsDependOn = [] } }) => [
      name,
      [...dependsOn.filter((each) => typeof each === "string"), ...itemsDependOn],
    ]),
  );
}

/** A name in `dependsOn` or `itemsDependOn`, and the way to it. */
interface LocatedDependency {
  readonly list: "dependsOn" | "itemsDependOn";
  readonly name: string;
  readonly isOptional: boolean;
  readonly path: YamlPath;
}

/** Returns what a dependent waits for as its spec states it. */
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

/** Returns what becomes of the object of a dependent. No owner reference leads to another cluster. */
export function deletionOf({ deletion, cluster }: DependentSpec): DeletionSpec {
  return deletion ?? (cluster === undefined ? "garbageCollected" : "ordered");
}

/** Tells whether the garbage collector deletes a dependent with its primary. */
export function isCollected(spec: DependentSpec): boolean {
  return spec.external === undefined && spec.mode !== "readOnly" && deletionOf(spec) === "garbageCollected";
}

/** Tells whether the operator deletes a dependent in a cleanup. */
export function isDeletedByOperator(spec: DependentSpec): boolean {
  if (spec.external !== undefined) return spec.external.capabilities?.includes("delete") ?? true;
  return spec.mode !== "readOnly" && spec.operations?.delete !== false && deletionOf(spec) === "ordered";
}

/** An event source of a workflow spec, with its kind if it watches one. */
export interface ResolvedEventSource {
  readonly name: string;
  readonly spec: EventSourceSpec;
  readonly path: YamlPath;
  readonly resource?: ResourceModel;
}

/** Returns what a warning about a dependent states, so that the dependent can accept it. */
export function subjectOf({ spec }: ResolvedController, { name }: { readonly name: string }): string {
  return `${spec.name}/${name}`;
}

/** Finds one kind of mistake. */
export type Check = (project: ResolvedProject) => Diagnostic[];

/** Finds one kind of mistake that lies within one controller. */
export function checkOfController(
  check: (controller: ResolvedController, project: ResolvedProject) => Diagnostic[],
): Check {
  return (project) => project.controllers.flatMap((controller) => check(controller, project));
}

/** A filter of a primary, a dependent or an event source, and the way to it. */
interface LocatedFilter {
  readonly name: FilterName;
  readonly filter: FilterSpec;
  readonly path: YamlPath;
}

/** The names that the expression of each filter may refer to, in the order of the arguments of a filter. */
export const FILTER_ARGUMENTS: { readonly [K in FilterName]: readonly ExpressionName[] } = {
  onAdd: ["object"],
  onUpdate: ["object", "old"],
  onDelete: ["object", "isFinalStateUnknown"],
  generic: ["object"],
};

/** Returns the filters that are stated in one place. */
export function filtersIn(filters: FiltersSpec = {}, path: YamlPath): LocatedFilter[] {
  return (Object.keys(FILTER_ARGUMENTS) as FilterName[]).flatMap((name) => {
    const filter = filters[name];
    return filter === undefined ? [] : [{ name, filter, path: [...path, "filters", name] }];
  });
}

/** Returns all filters of a controller. */
export function filtersOf({ spec, dependents, eventSources }: ResolvedController): LocatedFilter[] {
  return [
    ...filtersIn(spec.controller.filters, ["spec", "controller"]),
    ...[...dependents, ...eventSources].flatMap((member) => filtersIn(member.spec.filters, member.path)),
  ];
}

/** A function of the user's that an event source names, and the way to its name. */
interface LocatedFunction {
  readonly name: string;
  readonly path: YamlPath;
}

/** Returns the functions that an event source names for its own file. */
export function functionsOf({ spec: { mapping, primaryToSecondary }, path }: ResolvedEventSource): LocatedFunction[] {
  const mapper = typeof mapping === "object" ? mapping.function : undefined;
  return [
    ...(mapper === undefined ? [] : [{ name: mapper, path: [...path, "mapping", "function"] }]),
    ...(primaryToSecondary === undefined
      ? []
      : [{ name: primaryToSecondary.function, path: [...path, "primaryToSecondary", "function"] }]),
  ];
}

/** What a condition of a spec says, whether it is a word or a key with arguments. */
type StatedCondition =
  | { readonly kind: "when"; readonly expression: string }
  | { readonly kind: "function"; readonly name: string }
  | StatedBuiltin;

/** A condition of the runtime that a spec states. */
export type StatedBuiltin =
  | { readonly kind: "builtin"; readonly name: Exclude<ConditionWord, "crdPresent"> }
  | StatedPresence
  | { readonly kind: "builtin"; readonly name: "condition"; readonly status: StatusConditionSpec }
  | { readonly kind: "builtin"; readonly name: "fieldEquals"; readonly field: FieldEqualsSpec };

/** `crdPresent` or its negation. */
interface StatedPresence {
  readonly kind: "builtin";
  readonly name: "crdPresent";
  /** Default: the kind of the dependent or the event source. */
  readonly of?: string | UntypedKindSpec;
  readonly isNegated?: true;
}

/** A condition of a dependent, and the way to it. */
export interface LocatedCondition {
  readonly name: ConditionName;
  readonly condition: StatedCondition;
  /** The way to the word, or to the value of the key. */
  readonly path: YamlPath;
}

const CONDITIONS: readonly ConditionName[] = [
  "activationCondition",
  "reconcilePrecondition",
  "existing",
  "readyPostcondition",
  "deletePostcondition",
];

/** Returns the conditions of a dependent in the order of a reconcile. */
export function conditionsOf({ spec, path }: Pick<ResolvedDependent, "spec" | "path">): LocatedCondition[] {
  return CONDITIONS.flatMap((name) => {
    const stated = spec[name];
    if (stated === undefined || stated === "refuse" || stated === "adopt") return [];
    const keys = typeof stated === "string" ? [] : Object.keys(stated);
    return [{ name, condition: conditionOf(stated), path: [...path, name, ...keys] }];
  });
}

/** Returns the activationCondition of an event source. */
export function activationOf({ spec }: Pick<ResolvedEventSource, "spec">): StatedPresence | undefined {
  const { activationCondition } = spec;
  return activationCondition === undefined ? undefined : (conditionOf(activationCondition) as StatedPresence);
}

/** A kind that a `crdPresent` names, and the way to it. */
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

/** Returns where a spec says which condition it means: the word, or the key. */
export function placeOfCondition({ name, path }: LocatedCondition, document: YamlDocument): Place {
  return path.at(-1) === name ? document.valueAt(path) : document.keyAt(path);
}

/** A kind as a spec names it: `apps/v1/Deployment`, or `v1/ConfigMap` for the core group. */
export interface KindName {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** All kinds that a project can use. */
export interface ResourceCatalog {
  /** Every version of every CRD of the project, and the kinds that it describes without a CRD. */
  readonly custom: readonly ResourceModel[];
  /** The files in which the CRDs are. */
  readonly crdFiles: readonly string[];
  /** Every name that `find` knows. */
  readonly names: readonly string[];
  find(name: KindName): ResourceModel | undefined;
  /** Returns the kind that a spec describes by its name alone. */
  untyped(spec: UntypedKindSpec): ResourceModel;
  /** Returns what the API server can do with a built-in kind; nothing for other kinds. */
  verbsOf(resource: ResourceModel): readonly string[] | undefined;
}

/** Builds the catalog of a project; a kind that is found twice is the same object. */
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

/** Formats a kind as specs name it. */
export function formatKind({ group, version, kind }: KindName): string {
  return [...(group === "" ? [] : [group]), version, kind].join("/");
}

/** Returns the parts of a kind's name, which the schema of specs has checked. */
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
      // Nobody looks into the schema of a definition that is as it was.
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
  // The server takes a namespace also for kinds that have none, unless it lists their fields one by one.
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

/** Which names a name depends on. */
export type DependencyGraph = ReadonlyMap<string, readonly string[]>;

/** Returns the names so that each comes after those it depends on, and otherwise in the order in which they were given. */
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

/** Returns all that a name depends on, directly or through others. */
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
 * Returns a shortest cycle through each group of names that depend on each other, starting at the name that was given first.
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
    // Other cycles through the same names go away or show up once this one is broken.
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

// What is not in the graph is reported by another rule.
function neighboursOf(graph: DependencyGraph, name: string): readonly string[] {
  return (graph.get(name) ?? []).filter((other) => graph.has(other));
}

/** Returns the present name of each former one; a name that was changed twice leads to the last. */
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

/** Returns the former names of a dependent, the latest first. */
export function formerNamesOf(name: string, moved: readonly MovedSpec[]): string[] {
  const present = presentNames(moved);
  return moved.flatMap(({ from }) => (present.get(from) === name ? from : [])).reverse();
}
