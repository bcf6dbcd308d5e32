import type { ServedType } from "../builtin/served-type.js";
import { invalidError, type FieldError } from "../errors/field-error.js";
import { objectAt, stringAt, type JsonObject } from "../json.js";
import { valueAtPath } from "./field-path.js";

/** Where an object keeps what its Scale shows; paths such as `.spec.replicas`. */
export interface ScalePaths {
  specReplicas: string;
  statusReplicas: string;
  labelSelector: string | undefined;
}

/** Returns the path of the number that a type's Scale writes. */
export function scalePathsOf(type: ServedType): ScalePaths {
  const declared = objectAt(objectAt(type.custom?.version, "subresources"), "scale");
  return {
    specReplicas: stringAt(declared, "specReplicasPath") ?? ".spec.replicas",
    statusReplicas: stringAt(declared, "statusReplicasPath") ?? ".status.replicas",
    labelSelector: stringAt(declared, "labelSelectorPath"),
  };
}

/** Checks the number of replicas that the Scale of a custom resource shows, on every write of the resource. */
export function checkScaleOf(type: ServedType, object: JsonObject): FieldError[] {
  if (!type.subresources.some(({ name }) => name === "scale")) return [];
  const { specReplicas } = scalePathsOf(type);
  const replicas = valueAtPath(object, specReplicas);
  if (replicas === undefined || replicas === null) return [];
  if (typeof replicas === "number" && Number.isInteger(replicas)) {
    return replicas < 0 ? [invalidError(specReplicas, replicas, "should be a non-negative integer")] : [];
  }
  const goType = typeof replicas === "number" ? "float64" : typeof replicas;
  const detail = `${specReplicas} accessor error: ${JSON.stringify(replicas)} is of the type ${goType}, expected int64`;
  return [invalidError(specReplicas, 0, detail.replaceAll('"', ""))];
}
