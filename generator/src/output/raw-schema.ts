import type { RawSchema } from "../model/project-model.js";
import type { TypeModel } from "./shape-model.js";

/** Tells whether a value is a JSON object. */
export function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the schemas below a keyword that maps names to schemas; the names may be anything, even `__proto__`. */
export function schemasOf(schema: RawSchema, keyword: "properties"): ReadonlyMap<string, RawSchema> {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  if (!isRecord(value)) return new Map();
  return new Map(Object.entries(value).map(([name, child]) => [name, isRecord(child) ? child : {}]));
}

/** Returns the schema below a keyword; undefined if there is none, or if it is a boolean or a list. */
export function ownSchema(schema: RawSchema, keyword: "items" | "additionalProperties"): RawSchema | undefined {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  return isRecord(value) ? value : undefined;
}

/** Recognises a number-or-text field in all four spellings: the flag alone, beside `anyOf` or `allOf`, and the format. */
export function isIntOrString(schema: RawSchema): boolean {
  return (
    schema["x-kubernetes-int-or-string"] === true ||
    schema["format"] === "int-or-string" ||
    (schema["format"] === "quantity" && schema["type"] === undefined)
  );
}

/** Returns the union of the values of an enum; undefined if there is none, or if one of the values is no scalar. */
export function enumTypeOf(schema: RawSchema): TypeModel | undefined {
  const values = schema["enum"];
  if (!Array.isArray(values)) return undefined;
  const scalars = values.filter(isScalar);
  // A value of another type than the schema's can never be valid.
  const possible = [...new Set(scalars)].filter((value) => hasTypeOf(schema, value));
  if (possible.length === 0 || scalars.length + values.filter((value) => value === null).length < values.length)
    return undefined;
  return { kind: "enum", values: possible };
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function hasTypeOf(schema: RawSchema, value: string | number | boolean): boolean {
  const type = schema["type"];
  if (type === undefined) return true;
  return type === "integer" ? Number.isInteger(value) : type === typeof value;
}

const CONDITION_FIELDS = ["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"];
const CONDITION_REQUIRED = ["lastTransitionTime", "message", "reason", "status", "type"];

/** Recognises `metav1.Condition`: exactly its fields, of which all but `observedGeneration` are required. */
export function isStatusCondition(schema: RawSchema): boolean {
  const properties = schemasOf(schema, "properties");
  if (!isSame([...properties.keys()], CONDITION_FIELDS)) return false;
  if (!Array.isArray(schema["required"]) || !isSame(schema["required"] as string[], CONDITION_REQUIRED)) return false;
  const statuses = properties.get("status")?.["enum"];
  if (!Array.isArray(statuses) || !isSame(statuses as string[], ["False", "True", "Unknown"])) return false;
  return ["lastTransitionTime", "message", "reason", "type"].every((name) => {
    const field = properties.get(name);
    return field?.["type"] === "string" && field["enum"] === undefined;
  });
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return [...left].sort().join() === right.join();
}
