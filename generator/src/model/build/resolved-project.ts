import type { Diagnostic } from "../../diagnostic.js";
import type { ExternalFile } from "../../input/read-external-files.js";
import type {
  DeletionSpec,
  DependencySpec,
  DependentSpec,
  EventSourceSpec,
  FilterSpec,
  FiltersSpec,
  RemovedSpec,
  WorkflowSpec,
} from "../../input/workflow-spec.js";
import type { YamlPath } from "../../input/yaml/yaml-document.js";
import type { ExpressionName, FilterName, ResourceModel } from "../project-model.js";
import type { ProjectMemory } from "../project-memory.js";
import type { ResourceCatalog } from "./resource-catalog.js";

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
export interface LocatedDependency {
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
export type Rule = (project: ResolvedProject) => Diagnostic[];

/** Finds one kind of mistake that lies within one controller. */
export function ruleOfController(
  check: (controller: ResolvedController, project: ResolvedProject) => Diagnostic[],
): Rule {
  return (project) => project.controllers.flatMap((controller) => check(controller, project));
}

/** A filter of a primary, a dependent or an event source, and the way to it. */
export interface LocatedFilter {
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
export interface LocatedFunction {
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
