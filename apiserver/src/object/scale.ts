/** The scale subresource: the replicas of an object as a Scale. */
import { MAX_REPLICAS, type ScaleProblem, findScaleProblems } from "@gen-operator/schema";
import type { ServedType } from "../builtin/served-type.js";
import { type FieldError, invalidError } from "../errors/field-error.js";
import { goFormat } from "../errors/go-format.js";
import { internalError } from "../errors/status-error.js";
import { numberTextsIn } from "../exact-numbers.js";
import { type JsonObject, type JsonValue, arrayAt, clone, isObject, objectAt, stringAt } from "../json.js";
import { setAtPath, valueAtPath } from "./field-path.js";
import { metadataOf } from "./object-meta.js";

const META_FIELDS = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];

/** Returns the Scale of an object. Throws 500 if a custom resource has no replicas, unless `needsReplicas` is false. */
export function scaleOf(
  type: ServedType,
  { object }: { object: JsonObject },
  { needsReplicas = true } = {},
): JsonObject {
  const paths = scalePathsOf(type);
  const replicas = valueAtPath(object, paths.specReplicas);
  if (replicas === undefined && needsReplicas && type.custom !== undefined) {
    throw internalError(`the spec replicas field "${paths.specReplicas}" does not exist`);
  }
  const selector = selectorOf(type, object, paths);
  const metadata = Object.fromEntries(
    META_FIELDS.flatMap((field) =>
      metadataOf(object)[field] === undefined ? [] : [[field, metadataOf(object)[field]]],
    ),
  ) as JsonObject;
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata,
    // A Scale omits zero replicas.
    spec: replicas === undefined || replicas === 0 ? {} : { replicas },
    status: { replicas: valueAtPath(object, paths.statusReplicas) ?? 0, ...(selector === "" ? {} : { selector }) },
  };
}

/** Returns an object with the replicas of a Scale. */
export function withScale(type: ServedType, object: JsonObject, scale: JsonObject): JsonObject {
  const scaled = clone(object);
  setAtPath(scaled, scalePathsOf(type).specReplicas, objectAt(scale, "spec")?.["replicas"] ?? 0);
  return scaled;
}

function selectorOf(type: ServedType, object: JsonObject, paths: ScalePaths): string {
  if (type.custom !== undefined) {
    const selector = paths.labelSelector === undefined ? undefined : valueAtPath(object, paths.labelSelector);
    return typeof selector === "string" ? selector : "";
  }
  const selector = objectAt(objectAt(object, "spec"), "selector") ?? {};
  const labels = objectAt(selector, "matchLabels") ?? (type.group === "" ? selector : {});
  const equalities = Object.entries(labels).map(([key, value]) => `${key}=${String(value)}`);
  const expressions = (arrayAt(selector, "matchExpressions") ?? []).filter(isObject).map(expressionText);
  return [...equalities, ...expressions].sort().join(",");
}

function expressionText(expression: JsonObject): string {
  const key = String(expression["key"]);
  const values = (arrayAt(expression, "values") ?? []).join(",");
  switch (expression["operator"]) {
    case "In":
      return `${key} in (${values})`;
    case "NotIn":
      return `${key} notin (${values})`;
    case "DoesNotExist":
      return `!${key}`;
    default:
      return key;
  }
}

/** The paths of the Scale fields in an object, such as `.spec.replicas`. */
interface ScalePaths {
  specReplicas: string;
  statusReplicas: string;
  labelSelector: string | undefined;
}

/** Returns the paths of the Scale fields of a type. */
export function scalePathsOf(type: ServedType): ScalePaths {
  const declared = objectAt(objectAt(type.custom?.version, "subresources"), "scale");
  return {
    specReplicas: stringAt(declared, "specReplicasPath") ?? ".spec.replicas",
    statusReplicas: stringAt(declared, "statusReplicasPath") ?? ".status.replicas",
    labelSelector: stringAt(declared, "labelSelectorPath"),
  };
}

/** Validates the Scale fields of a custom resource, on every write of the resource. */
export function checkScaleOf(type: ServedType, object: JsonObject, options: { ofStatus?: boolean } = {}): FieldError[] {
  if (!type.subresources.some(({ name }) => name === "scale")) return [];
  const { specReplicas, statusReplicas, labelSelector = "" } = scalePathsOf(type);
  const paths = {
    specReplicasPath: specReplicas,
    statusReplicasPath: statusReplicas,
    labelSelectorPath: labelSelector,
  };
  const isFloat = (holder: JsonObject, name: string) => numberTextsIn(holder)?.has(name) === true;
  return findScaleProblems(object, paths, { ...options, isFloat }).map(errorOf);
}

function errorOf({ path, value, expected, isSelector }: ScaleProblem): FieldError {
  switch (expected) {
    case "at least 0":
      return invalidError(path, value, "should be a non-negative integer");
    case "at most 2147483647":
      return invalidError(path, value, `should be less than or equal to ${MAX_REPLICAS}`);
    default: {
      const found = typeof value === "number" && expected === "an integer" ? "float64" : goTypeIn(value);
      const misfit = `${goFormat(value)} is of the type ${found}, expected ${GO_TYPES[expected]}`;
      return invalidError(path, isSelector ? "" : 0, `${path} accessor error: ${misfit}`);
    }
  }
}

const GO_TYPES = { "an object": "map[string]interface{}", "an integer": "int64", "a string": "string" };

// The Go type of a value that was decoded without a schema.
function goTypeIn(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (isObject(value)) return "map[string]interface {}";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : "string";
}
