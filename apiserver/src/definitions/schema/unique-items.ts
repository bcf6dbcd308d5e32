import { itemSchema, memberPathOf, memberSchema, type StructuralSchema } from "@gen-operator/schema/definitions";
import { duplicateError, invalidError, type FieldError } from "../../errors/field-error.js";
import { canonicalJson, isObject, memberOf, type JsonObject, type JsonValue } from "../../json.js";

/** Checks that sets hold no value twice and keyed lists no key. */
export function checkUniqueItems(schema: StructuralSchema, value: JsonValue, path = ""): FieldError[] {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    const below = items ? value.flatMap((item, index) => checkUniqueItems(items, item, `${path}[${index}]`)) : [];
    return [...repeatedItems(schema, value, path), ...below];
  }
  if (!isObject(value)) return [];
  return Object.keys(value).flatMap((name) => {
    const inner = memberSchema(schema, name);
    return inner ? checkUniqueItems(inner, value[name] as JsonValue, memberPathOf(schema, path, name)) : [];
  });
}

function repeatedItems(schema: StructuralSchema, items: JsonValue[], path: string): FieldError[] {
  const listType = schema["x-kubernetes-list-type"];
  if (listType !== "set" && listType !== "map") return [];
  const odd = listType === "map" ? items.findIndex((item) => item !== null && !isObject(item)) : -1;
  // The first item that has no keys is all that is told.
  if (odd >= 0)
    return [
      invalidError(`${path}[${odd}]`, items[odd] as JsonValue, "must be an object for an array of list-type map"),
    ];
  const counts = new Map<string, number>();
  const errors: FieldError[] = [];
  items.forEach((item, index) => {
    if (listType === "map" && item === null) return;
    const identity = canonicalJson(isObject(item) && listType === "map" ? keysOf(schema, item) : item);
    const count = (counts.get(identity) ?? 0) + 1;
    counts.set(identity, count);
    // However often a value is repeated, it is reported once.
    if (count === 2) errors.push(duplicateError(`${path}[${index}]`, JSON.parse(identity) as JsonValue));
  });
  return errors;
}

function keysOf(schema: StructuralSchema, item: JsonObject): JsonObject {
  const names = memberOf(schema, "x-kubernetes-list-map-keys");
  const keys: JsonObject = {};
  for (const name of Array.isArray(names) ? names : []) {
    const value = memberOf(item, String(name));
    if (value !== undefined) keys[String(name)] = value;
  }
  return keys;
}
