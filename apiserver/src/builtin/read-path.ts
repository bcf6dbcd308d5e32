import { type JsonObject, type JsonValue, isObject, memberOf } from "../json.js";

/** Returns the value at a dotted path; undefined if it is missing or null. */
export function at(object: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const key of path.split(".")) value = isObject(value) ? memberOf(value, key) : undefined;
  return value ?? undefined;
}

/** Returns the string, number, or boolean at a dotted path as a string; "" for anything else. */
export function textAt(object: JsonObject, path: string): string {
  const value = at(object, path);
  return value === undefined || typeof value === "object" ? "" : String(value);
}

/** Returns the number at a dotted path; 0 if there is none. */
export function countAt(object: JsonObject, path: string): number {
  const value = at(object, path);
  return typeof value === "number" ? value : 0;
}

/** Returns the objects of the list at a dotted path; an empty list if there is none. */
export function objectsAt(object: JsonObject, path: string): JsonObject[] {
  const value = at(object, path);
  return Array.isArray(value) ? value.filter(isObject) : [];
}
