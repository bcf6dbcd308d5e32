import type {
  ControllerModel,
  DependentModel,
  ExternalDependentModel,
  ResourceModel,
} from "../../model/project-model.js";
import { isKubernetes, ownOperationsOf, type KubernetesDependentModel } from "../../model/project-model.js";
import { dependentNamesOf, nameOrThrow, sourceNamesOf, type ControllerNames } from "../controller-names.js";
import { printInterface } from "../print/declarations.js";
import { functionOf, maybePromise, reference, type TypeNode } from "../print/type-node.js";
import { inputNameOf } from "../resource/resource-name.js";

/** What the types of a dependent are called in the files of its controller. */
export interface DependentTypeNames {
  /** A live object or resource; of a bulk dependent an item. */
  readonly live: string;
  /** What `desired` returns; of a bulk dependent an item. */
  readonly input: string;
  /** What `secondary` has. */
  readonly secondary: TypeNode;
  /** What `desired` returns as a whole. */
  readonly wanted: TypeNode;
}

/** Names the types of a dependent. */
export function dependentTypesOf(dependent: DependentModel, { resources }: ControllerNames): DependentTypeNames {
  const { live, input } = isKubernetes(dependent)
    ? objectTypesOf(dependent.resource, resources)
    : externalTypesOf(dependent);
  const isBulk = dependent.bulk !== undefined;
  return {
    live,
    input,
    secondary: isBulk ? reference("ItemsOf", live) : live,
    wanted: isBulk ? reference("ItemsOf", input) : input,
  };
}

/** Names the types of the objects of a kind; one without a class has those of the runtime. */
export function objectTypesOf(resource: ResourceModel, resources: ControllerNames["resources"]) {
  if (resource.isUntyped === true) return { live: "UntypedResource", input: "UntypedInput" };
  const { localName } = nameOrThrow(resources, resource);
  return { live: localName, input: inputNameOf(localName) };
}

// The resources of an event source have its type.
function externalTypesOf({ name, external: { source, desiredType } }: ExternalDependentModel) {
  const names = dependentNamesOf({ name });
  const live = source.kind === "eventSource" ? sourceNamesOf(source).resource : names.resource;
  return { live, input: desiredType === undefined ? live : names.draft };
}

/** Tells whether a function of the user's fetches the resources of a dependent. */
export function isFetched({ external: { source } }: ExternalDependentModel): boolean {
  return source.kind === "inbound" ? source.isFetched === true : source.kind !== "eventSource";
}

/** Tells whether a dependent has a file of the user's: with `desired`, with what an external one can do, or with both. */
export function hasFile(dependent: DependentModel): boolean {
  return !isKubernetes(dependent) || dependent.mode !== "readOnly";
}

/**
 * Returns the type of the user's constant with the own operations of a dependent: `context` and `secondary` are those of its arguments, but
 * for `delete`: what the dependent waits for may be gone in a cleanup.
 */
export function operationTypesOf(dependent: KubernetesDependentModel, names: ControllerNames): string[] {
  const types = dependentNamesOf(dependent);
  const { live, input } = dependentTypesOf(dependent, names);
  const arguments_ = { create: [input], update: [input, live], delete: [live] };
  const members = ownOperationsOf(dependent).map((operation) => {
    const secondary = operation === "delete" && dependent.waitsFor.length > 0 ? names.dependents : types.secondary;
    const args = reference(ARGUMENTS_OF[operation], names.primary, secondary, ...arguments_[operation]);
    return { head: `readonly ${operation}`, type: functionOf({ args }, maybePromise("void")) };
  });
  if (members.length === 0) return [];
  const doc = `/** What the operator calls in place of its own writes of "${dependent.name}". */`;
  return [printInterface({ name: types.operations, doc, extends: [], members })];
}

/** The types of the runtime that the own operations are called with. */
export const ARGUMENTS_OF = {
  create: "CreateArguments",
  update: "UpdateArguments",
  delete: "DeleteArguments",
} as const;

/** A condition of a controller that is a function of the user's, which may find more than whether it holds. */
interface DetailedConditions {
  readonly dependent: string;
  readonly conditions: readonly { readonly condition: string; readonly function: string }[];
}

/** Returns the conditions that are functions of the user's, by dependents. */
export function detailedConditionsOf({ dependents }: ControllerModel): DetailedConditions[] {
  return dependents.flatMap(({ name, conditions }) => {
    const found = Object.entries(conditions).flatMap(([condition, model]) =>
      // Results have no detail of `existing`, which is asked about an object, not about the dependent.
      condition !== "existing" && model.kind === "function" ? [{ condition, function: model.name }] : [],
    );
    return found.length === 0 ? [] : [{ dependent: name, conditions: found }];
  });
}

/** Returns the types of the parts of `secondary` that are always there: those of event sources, and the items of bulk dependents. */
export function alwaysThere(
  { eventSources, dependents }: ControllerModel,
  { sources, items }: ControllerNames,
): string[] {
  return [
    ...(eventSources.length > 0 ? [sources] : []),
    ...(dependents.some(({ bulk }) => bulk !== undefined) ? [items] : []),
  ];
}
