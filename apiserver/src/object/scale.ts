/** The scale subresource: one number of an object, seen as an object of its own. */
import type { ServedType } from "../builtin/served-type.js";
import { internalError } from "../errors/status-error.js";
import { arrayAt, clone, isObject, objectAt, type JsonObject } from "../json.js";
import { setAtPath, valueAtPath } from "./field-path.js";
import { metadataOf } from "./object-meta.js";
import { scalePathsOf, type ScalePaths } from "./scale-paths.js";

const META_FIELDS = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];

/** Returns the Scale of an object; without a number of replicas only where that is no failure. */
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
    // Zero is what a Scale without a number means, and how it is written.
    spec: replicas === undefined || replicas === 0 ? {} : { replicas },
    status: { replicas: valueAtPath(object, paths.statusReplicas) ?? 0, ...(selector === "" ? {} : { selector }) },
  };
}

/** Returns an object with the number of replicas that a Scale asks for. */
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
