import type { RawSchema } from "../project-model.js";

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

/** Tells whether a schema names any fields. */
export function hasFields(schema: RawSchema): boolean {
  const value = Object.hasOwn(schema, "properties") ? schema["properties"] : undefined;
  return isRecord(value) && Object.keys(value).length > 0;
}

/** Tells whether the API server drops the fields of an object that its schema does not declare. */
export function dropsFields(schema: RawSchema): boolean {
  const isKept =
    schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-embedded-resource"] === true;
  return schema["type"] === "object" && !isKept && schema["additionalProperties"] === undefined;
}

/** Returns the schema below a keyword; undefined if there is none, or if it is a boolean or a list. */
export function ownSchema(schema: RawSchema, keyword: "items" | "additionalProperties"): RawSchema | undefined {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  return isRecord(value) ? value : undefined;
}

/** Returns the schema of the items of a list. The API server keeps unknown fields of the items of a list that preserves them. */
export function itemsOf(schema: RawSchema): RawSchema | undefined {
  const items = ownSchema(schema, "items");
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  return isOpen && items !== undefined ? { ...items, "x-kubernetes-preserve-unknown-fields": true } : items;
}

/** Recognises a number-or-text field in all four spellings: the flag alone, beside `anyOf` or `allOf`, and the format. */
export function isIntOrString(schema: RawSchema): boolean {
  return (
    schema["x-kubernetes-int-or-string"] === true ||
    schema["format"] === "int-or-string" ||
    (schema["format"] === "quantity" && schema["type"] === undefined)
  );
}

const CONDITION_FIELDS = ["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"];
const STATUSES = ["False", "True", "Unknown"];
const CONDITION_REQUIRED = ["lastTransitionTime", "message", "reason", "status", "type"];
/** Recognises `metav1.Condition`: exactly its fields, of which all but `observedGeneration` are required. */
export function isStatusCondition(schema: RawSchema): boolean {
  // What hardly any other type has.
  if (!isRecord(schema["properties"]) || !Object.hasOwn(schema["properties"], "lastTransitionTime")) return false;
  const properties = schemasOf(schema, "properties");
  if (!isSame([...properties.keys()], CONDITION_FIELDS)) return false;
  if (!Array.isArray(schema["required"]) || !isSame(schema["required"] as string[], CONDITION_REQUIRED)) return false;
  const statuses = properties.get("status")?.["enum"];
  if (!Array.isArray(statuses) || !isSame(statuses as string[], STATUSES)) return false;
  return ["lastTransitionTime", "message", "reason", "type"].every((name) => {
    const field = properties.get(name);
    return field?.["type"] === "string" && field["enum"] === undefined;
  });
}

/** Tells whether an object may be a condition as the runtime writes it: with every field of `metav1.Condition`, and no other. */
export function takesStatusCondition(schema: RawSchema): boolean {
  const properties = schemasOf(schema, "properties");
  const required = Array.isArray(schema["required"]) ? (schema["required"] as string[]) : [];
  if (!required.every((name) => CONDITION_FIELDS.includes(name))) return false;
  return CONDITION_FIELDS.every((name) => {
    const field = properties.get(name);
    if (field?.["type"] !== (name === "observedGeneration" ? "integer" : "string")) return false;
    const values = field["enum"];
    return (
      values === undefined ||
      (name === "status" && Array.isArray(values) && STATUSES.every((each) => values.includes(each)))
    );
  });
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return [...left].sort().join() === right.join();
}
