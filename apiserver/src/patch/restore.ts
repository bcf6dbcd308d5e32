// Converts the result of a strategic merge patch, a tree of maps, back to the Go type of the kind, as Kubernetes does (FromUnstructured). The errors
// are worded differently from those of the JSON decoder and do not name the field.
import { base64Problem } from "../builtin/decode.js";
import { goFieldOf } from "../builtin/go-types.js";
import { type SchemaNode, schemaNode } from "../builtin/schema-node.js";
import { goTypeOf } from "../errors/go-format.js";
import { type JsonObject, type JsonValue, isObject, sortedJson, stringAt } from "../json.js";

/**
 * Returns the error if an object does not fit the type of a named built-in schema; undefined if it does. As in Go, integers that overflow int32 are
 * truncated and the keys of raw JSON are sorted, in place.
 */
export function restoreProblem(schemaName: string, object: JsonObject): string | undefined {
  return problemOf(schemaNode(schemaName), object);
}

function problemOf(node: SchemaNode, value: JsonValue, goType?: string): string | undefined {
  if (value === null) return undefined;
  const { text } = node;
  if (text !== undefined) {
    if (typeof value !== "string" && !text.takesNumbers) return unmarshalProblem(value, "string");
    const canonical = text.canonical(String(value));
    return "problem" in canonical ? canonical.problem : undefined;
  }
  if (node.isIntOrString) {
    if (typeof value === "number" && (!Number.isInteger(value) || isWide(value)))
      return `json: cannot unmarshal number ${value} into Go value of type int32`;
    return typeof value === "string" || typeof value === "number" ? undefined : unmarshalProblem(value, "int32");
  }
  switch (node.type) {
    case "object":
      return objectProblem(node, value);
    case "array":
      return listProblem(node, value, goType?.replace(/^\[\]/, ""));
    case "string":
    case "integer":
    case "number":
    case "boolean":
      return scalarProblem(node, value, goType);
    default:
      return undefined;
  }
}

function unmarshalProblem(value: JsonValue, target: string): string {
  return `json: cannot unmarshal ${goTypeOf(value)} into Go value of type ${target}`;
}

function objectProblem(node: SchemaNode, value: JsonValue): string | undefined {
  const isMap = node.values !== undefined;
  if (node.isRaw) return undefined;
  if (!isObject(value))
    return isMap ? `cannot restore map from ${kindOf(value)}` : `cannot restore struct from: ${kindOf(value)}`;
  for (const [key, member] of Object.entries(value)) {
    const child = node.child(key);
    const goType = isMap ? undefined : goFieldOf(node.name, key).type;
    const problem = child && problemOf(child, member, goType);
    if (problem !== undefined) return problem;
    if (child !== undefined) value[key] = restored(child, member);
  }
  return undefined;
}

const rawTypes = new Map<string, boolean>();

/** Reports whether a type contains raw JSON outside of its metadata. */
export function hasRaw(schemaName: string): boolean {
  let known = rawTypes.get(schemaName);
  if (known === undefined) rawTypes.set(schemaName, (known = reachesRaw(schemaNode(schemaName), new Set())));
  return known;
}

function reachesRaw(node: SchemaNode, seen: Set<SchemaNode>): boolean {
  if (seen.has(node)) return false;
  seen.add(node);
  if (node.isRaw) return true;
  const members = [...node.properties].filter(([key]) => key !== "managedFields").map(([, property]) => property.node);
  return [...members, node.items, node.values].some((below) => below !== undefined && reachesRaw(below, seen));
}

function restored(node: SchemaNode, value: JsonValue): JsonValue {
  if (node.isRaw && isObject(value)) return sortedJson(value);
  const isWrapped = typeof value === "number" && isWide(value) && stringAt(node.schema, "format") === "int32";
  return isWrapped ? value | 0 : value;
}

function isWide(value: number): boolean {
  return value !== (value | 0);
}

function listProblem({ items }: SchemaNode, value: JsonValue, itemType: string | undefined): string | undefined {
  if (!Array.isArray(value)) return `cannot restore slice from ${kindOf(value)}`;
  if (items === undefined) return undefined;
  for (const [index, item] of value.entries()) {
    const problem = problemOf(items, item, itemType);
    if (problem !== undefined) return problem;
    value[index] = restored(items, item);
  }
  return undefined;
}

// Bytes are given as a string or as a list of numbers.
function bytesProblem(value: JsonValue): string | undefined {
  if (typeof value === "string") {
    const problem = base64Problem(value);
    return problem && `error decoding from json: ${problem}`;
  }
  if (!Array.isArray(value)) return `cannot restore slice from ${kindOf(value)}`;
  return value.every((byte) => typeof byte === "number") ? undefined : "unrecognized type: uint8";
}

function scalarProblem(node: SchemaNode, value: JsonValue, goType: string | undefined): string | undefined {
  if (node.isBytes) return bytesProblem(value);
  const type = String(node.type);
  const target = type === "integer" ? (stringAt(node.schema, "format") ?? "int64") : SCALARS[type];
  if (typeof value === "number" && type === "integer") {
    return Number.isInteger(value) ? undefined : `cannot convert float64 to ${target}`;
  }
  if (goTypeOf(value) === (type === "boolean" ? "bool" : type)) return undefined;
  // Go can convert an integer to a string, so the error differs.
  const isConvertible = type === "string" && typeof value === "number" && Number.isInteger(value);
  return isConvertible ? `cannot convert int64 to ${goType ?? target}` : `unrecognized type: ${target}`;
}

const SCALARS: Record<string, string> = { string: "string", number: "float64", boolean: "bool" };

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return "slice";
  if (isObject(value)) return "map";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return goTypeOf(value);
}
