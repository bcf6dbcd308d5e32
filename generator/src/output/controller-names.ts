import type { ControllerModel, ResourceModel } from "../model/project-model.js";
import { camelCase, kebabCase, pascalCase } from "./naming.js";
import type { ResourceName } from "./resource-name.js";

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
  /** `WebPageReconciler` */
  readonly reconciler: string;
  /** `WebPageReconcileArguments` */
  readonly reconcileArguments: string;
  /** The classes that the controller uses, the primary's first. */
  readonly resources: ReadonlyMap<ResourceModel, ResourceName>;
}

/** Names what the files of a controller contain. */
export function controllerNamesOf(
  { name, primary, dependents }: ControllerModel,
  all: ReadonlyMap<ResourceModel, ResourceName>,
): ControllerNames {
  const used = new Set([primary, ...dependents.map(({ resource }) => resource)]);
  const resources = new Map([...used].map((resource) => [resource, nameOrThrow(all, resource)]));
  const local = nameOrThrow(all, primary).localName;
  return {
    folder: kebabCase(name),
    primary: local,
    workflow: `${camelCase(local)}Workflow`,
    controller: `${camelCase(local)}Controller`,
    dependents: `${local}Dependents`,
    reconciler: `${local}Reconciler`,
    reconcileArguments: `${local}ReconcileArguments`,
    resources,
  };
}

/** What the files of a controller call one dependent. */
export interface DependentNames {
  /** `configMap`, as in the spec. */
  readonly name: string;
  /** `config-map`: the name of the user's file. */
  readonly file: string;
  readonly secondary: string;
  readonly arguments: string;
  readonly desired: string;
  readonly condition: string;
  readonly conditionArguments: string;
}

/** Names the types of a dependent. */
export function dependentNamesOf({ name }: { readonly name: string }): DependentNames {
  const type = pascalCase(name);
  return {
    name,
    file: kebabCase(name),
    secondary: `${type}Secondary`,
    arguments: `${type}Arguments`,
    desired: `${type}Desired`,
    condition: `${type}Condition`,
    conditionArguments: `${type}ConditionArguments`,
  };
}

/** Returns the name of a resource that the project must have. */
export function nameOrThrow(names: ReadonlyMap<ResourceModel, ResourceName>, resource: ResourceModel): ResourceName {
  const name = names.get(resource);
  if (name === undefined) throw new Error(`${resource.kind} is used by a workflow but is no resource of the model`);
  return name;
}
