import type { ControllerModel, FilterName, ResourceModel } from "../model/project-model.js";
import { usedKindsOf } from "../model/used-kinds.js";
import { camelCase, kebabCase, pascalCase } from "./naming.js";
import type { ResourceName } from "./resource/resource-name.js";

/** What the files of a controller call things, and where the files are. */
export interface ControllerNames {
  /** `webpage`: the folder below `src` and `src/generated`. */
  readonly folder: string;
  /** `WebPage`: the class of the primary in the files of this controller. */
  readonly primary: string;
  /** `webPageWorkflow` */
  readonly workflow: string;
  /** `webPageController` */
  readonly controller: string;
  /** `WebPageDependents` */
  readonly dependents: string;
  /** `WebPageSources`: what the event sources know of one primary. */
  readonly sources: string;
  /** `WebPageItems`: the items of the bulk dependents. */
  readonly items: string;
  /** `WebPageLookups`: what looking resources up by their class gives, where that is less than all of them. */
  readonly lookups: string;
  /** `WebPageDetails`: what the conditions find besides whether they hold. */
  readonly details: string;
  /** `WebPageIndex`: returns the values under which an index finds a primary. */
  readonly index: string;
  /** `WebPageReconciler` */
  readonly reconciler: string;
  /** `WebPageReconcileArguments` */
  readonly reconcileArguments: string;
  /** The classes that the controller uses, the primary's first. */
  readonly resources: ReadonlyMap<ResourceModel, ResourceName>;
}

/** Names what the files of a controller contain; `others` are all controllers of the project. */
export function controllerNamesOf(
  model: ControllerModel,
  all: ReadonlyMap<ResourceModel, ResourceName>,
  others: readonly ControllerModel[],
): ControllerNames {
  const { name, primary, dependents, eventSources } = model;
  const used = usedKindsOf(model).filter(({ isUntyped }) => isUntyped !== true);
  const declared = new Set([
    ...dependents.flatMap((dependent) => Object.values(dependentNamesOf(dependent))),
    ...eventSources.flatMap((source) => Object.values(sourceNamesOf(source))),
    ...[...dependents, ...eventSources].flatMap(({ name: member }) => Object.values(filterNamesOf(member))),
  ]);
  const resources = new Map(used.map((resource) => [resource, unlike(declared, nameOrThrow(all, resource))]));
  const local = nameOrThrow(resources, primary).localName;
  // The kind says more than the name of the controller, unless several controllers have it.
  const isAlone = others.filter((other) => other.primary === primary).length === 1;
  const prefix = camelCase(isAlone ? local : name);
  return {
    folder: kebabCase(name),
    primary: local,
    workflow: `${prefix}Workflow`,
    controller: `${prefix}Controller`,
    dependents: `${local}Dependents`,
    sources: `${local}Sources`,
    items: `${local}Items`,
    lookups: `${local}Lookups`,
    details: `${local}Details`,
    index: `${local}Index`,
    reconciler: `${local}Reconciler`,
    reconcileArguments: `${local}ReconcileArguments`,
    resources,
  };
}

// A kind "WebCondition" beside a dependent "web", whose condition's type has that name.
function unlike(declared: ReadonlySet<string>, name: ResourceName): ResourceName {
  return declared.has(name.localName) || declared.has(`${name.localName}Input`)
    ? { ...name, localName: `${name.localName}Resource` }
    : name;
}

/** What the files of a controller call one dependent. */
export interface DependentNames {
  /** `configMap`, as in the spec. */
  readonly name: string;
  /** `config-map`: the name of the user's file. */
  readonly file: string;
  /** `ServiceNeeds`: what it waits for. */
  readonly needs: string;
  readonly secondary: string;
  readonly arguments: string;
  readonly desired: string;
  readonly items: string;
  readonly condition: string;
  readonly conditionArguments: string;
  /** `WebDeletionCondition`: the type of its deletePostcondition, where other conditions see more. */
  readonly deletionCondition: string;
  readonly deletionArguments: string;
  /** `WebExisting`: the type of a function that decides whether an object is adopted. */
  readonly existing: string;
  readonly existingArguments: string;
  readonly matcher: string;
  /** `DeploymentOperations`: the own functions that write an object. */
  readonly operations: string;
  /** `AccountExternal`: the functions that find and change an external resource. */
  readonly external: string;
  /** What an external dependent consists of. */
  readonly resource: string;
  /** What is desired, where that has a type of its own. */
  readonly draft: string;
  /** `pricesSource`: where the user's code hands over resources that something else brings. */
  readonly source: string;
  /** What is kept of a resource, where that is more than an id. */
  readonly kept: string;
}

/** Names the types of a dependent. */
export function dependentNamesOf({ name }: { readonly name: string }): DependentNames {
  const type = pascalCase(name);
  return {
    name,
    file: kebabCase(name),
    needs: `${type}Needs`,
    secondary: `${type}Secondary`,
    arguments: `${type}Arguments`,
    desired: `${type}Desired`,
    items: `${type}Items`,
    condition: `${type}Condition`,
    conditionArguments: `${type}ConditionArguments`,
    deletionCondition: `${type}DeletionCondition`,
    deletionArguments: `${type}DeletionArguments`,
    existing: `${type}Existing`,
    existingArguments: `${type}ExistingArguments`,
    matcher: `${type}Matcher`,
    operations: `${type}Operations`,
    external: `${type}External`,
    resource: `${type}Resource`,
    draft: `${type}Draft`,
    source: `${name}Source`,
    kept: `${type}Kept`,
  };
}

/** What the files of a controller call one event source. */
export interface SourceNames {
  /** `pods`, as in the spec. */
  readonly name: string;
  /** `pods`: the name of the user's file. */
  readonly file: string;
  /** `podsFunctions`: the functions of the user's file, or its constant `source`. */
  readonly module: string;
  /** `podsSource`: the source itself, where the user's code has to reach it. */
  readonly source: string;
  readonly resource: string;
  readonly mapper: string;
  readonly primaryMapper: string;
  /** `ServersSource`: the functions that find the resources of a source outside Kubernetes. */
  readonly functions: string;
}

/** Names the types of an event source. */
export function sourceNamesOf({ name }: { readonly name: string }): SourceNames {
  const type = pascalCase(name);
  return {
    name,
    file: kebabCase(name),
    module: `${name}Functions`,
    source: `${name}Source`,
    resource: `${type}Resource`,
    mapper: `${type}Mapper`,
    primaryMapper: `${type}PrimaryMapper`,
    functions: `${type}Source`,
  };
}

/** Names the types of the filters of the primary, a dependent or an event source, by the kind of change. */
export function filterNamesOf(owner: string): { readonly [K in FilterName]: string } {
  const type = pascalCase(owner);
  return {
    onAdd: `${type}Filter`,
    onUpdate: `${type}UpdateFilter`,
    onDelete: `${type}DeleteFilter`,
    generic: `${type}Filter`,
  };
}

/** Returns the name of a resource that the project must have. */
export function nameOrThrow(names: ReadonlyMap<ResourceModel, ResourceName>, resource: ResourceModel): ResourceName {
  const name = names.get(resource);
  if (name === undefined) throw new Error(`${resource.kind} is used by a workflow but is no resource of the model`);
  return name;
}
