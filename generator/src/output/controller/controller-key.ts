import type { ControllerModel, ResourceModel } from "../../model/project-model.js";
import { digestOf } from "../../parts/digest.js";
import type { ControllerNames } from "../controller-names.js";

/** All that the files of a controller are made from. */
export interface ControllerParts {
  readonly controller: ControllerModel;
  readonly names: ControllerNames;
  readonly hasReconciler: boolean;
}

/** What stands for a controller in the memory of a run. */
export interface ControllerKeys {
  /** Stands for all of it; undefined if it has a kind that nothing short stands for. */
  readonly whole: string | undefined;
  /** Stands for all of it but the fields of its kinds: a CRD that changes rarely changes it. */
  readonly outline: string;
}

/** Returns what stands for a controller. */
export function controllerKeysOf({ controller, names, hasReconciler }: ControllerParts): ControllerKeys {
  const { resources, ...rest } = names;
  const digests: string[] = [];
  const shortened = (_key: string, value: unknown) => {
    if (!isResource(value)) return value;
    digests.push(value.digest ?? "");
    return outlineOf(value);
  };
  const outline = JSON.stringify([controller, rest, [...resources], hasReconciler], shortened);
  const isKnown = [...resources.keys()].every(isKnownByName);
  return { whole: isKnown ? digestOf(outline, ...digests) : undefined, outline: digestOf(outline) };
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
  const names = Object.keys(resource).filter((name) => !["schema", "definitions", "crd", "digest"].includes(name));
  return Object.fromEntries(names.map((name) => [name, resource[name as keyof ResourceModel]]));
}
