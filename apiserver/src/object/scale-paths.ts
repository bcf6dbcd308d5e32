import type { ServedType } from "../builtin/served-type.js";
import { invalidError, type FieldError } from "../errors/field-error.js";
import { goFormat } from "../errors/go-format.js";
import { isObject, memberOf, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";

const MAX_REPLICAS = 2 ** 31 - 1;

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

/** Checks the numbers and the selector that the Scale of a custom resource shows, on every write of the resource. */
export function checkScaleOf(type: ServedType, object: JsonObject, { ofStatus = false } = {}): FieldError[] {
  if (!type.subresources.some(({ name }) => name === "scale")) return [];
  const { specReplicas, statusReplicas, labelSelector } = scalePathsOf(type);
  return [
    ...(ofStatus ? [] : checkReplicas(object, specReplicas)),
    ...checkReplicas(object, statusReplicas),
    ...(labelSelector === undefined || labelSelector === "" ? [] : checkSelector(object, labelSelector)),
  ];
}

function checkReplicas(object: JsonObject, path: string): FieldError[] {
  const { value, misfit } = accessAt(object, path, "int64");
  if (misfit !== undefined) return [invalidError(path, 0, misfit)];
  if (typeof value === "number" && value > MAX_REPLICAS)
    return [invalidError(path, value, `should be less than or equal to ${MAX_REPLICAS}`)];
  return typeof value === "number" && value < 0 ? [invalidError(path, value, "should be a non-negative integer")] : [];
}

function checkSelector(object: JsonObject, path: string): FieldError[] {
  const { misfit } = accessAt(object, path, "string");
  return misfit === undefined ? [] : [invalidError(path, "", misfit)];
}

// What is absent fits, and what would be below null.
function accessAt(object: JsonObject, path: string, expected: string): { value?: JsonValue; misfit?: string } {
  let value: JsonValue = object;
  for (const name of path.slice(1).split(".")) {
    if (value === null) return {};
    if (!isObject(value)) return { misfit: misfitText(path, value, "map[string]interface{}") };
    const member: JsonValue | undefined = memberOf(value, name);
    if (member === undefined) return {};
    value = member;
  }
  return goTypeIn(value) === expected ? { value } : { misfit: misfitText(path, value, expected) };
}

function misfitText(path: string, value: JsonValue, expected: string): string {
  return `${path} accessor error: ${goFormat(value)} is of the type ${goTypeIn(value)}, expected ${expected}`;
}

// As Go holds JSON of which it knows no type.
function goTypeIn(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (isObject(value)) return "map[string]interface {}";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : "string";
}
