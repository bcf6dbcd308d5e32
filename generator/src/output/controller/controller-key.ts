import type { ControllerModel, ResourceModel } from "../../model/project-model.js";
import { digestOf } from "../../parts/digest.js";
import type { ControllerNames } from "../controller-names.js";

/** All that the files of a controller are made from. */
export interface ControllerParts {
  readonly controller: ControllerModel;
  readonly names: ControllerNames;
  readonly hasReconciler: boolean;
}

/** Returns what stands for a controller in the memory of a run; undefined if it has a kind that nothing short stands for. */
export function controllerKeyOf({ controller, names, hasReconciler }: ControllerParts): string | undefined {
  const { resources, ...rest } = names;
  if (![...resources.keys()].every(isKnownByName)) return undefined;
  const shortened = (_key: string, value: unknown) => (isResource(value) ? outlineOf(value) : value);
  return digestOf(JSON.stringify([controller, rest, [...resources], hasReconciler], shortened));
}

/** Tells whether a kind is told by its digest, or by its name since it comes with the generator. */
function isKnownByName({ digest, isCustom, isDescribed }: ResourceModel): boolean {
  return digest !== undefined || (!isCustom && isDescribed !== true);
}

function isResource(value: unknown): value is ResourceModel {
  return typeof value === "object" && value !== null && "listKind" in value && "schema" in value;
}

/** Returns all of a kind but its fields, which are long, and are read from a CRD only if somebody looks at them. */
function outlineOf(resource: ResourceModel): object {
  const names = Object.keys(resource).filter((name) => !["schema", "definitions", "crd"].includes(name));
  return Object.fromEntries(names.map((name) => [name, resource[name as keyof ResourceModel]]));
}
