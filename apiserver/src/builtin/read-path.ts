import { type JsonObject, type JsonValue, isObject, memberOf } from "../json.js";

/** Reads a member deep inside an object. */
export function at(object: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const key of path.split(".")) value = isObject(value) ? memberOf(value, key) : undefined;
  return value ?? undefined;
}

/** Reads text deep inside an object; "" if there is none. */
export function textAt(object: JsonObject, path: string): string {
  const value = at(object, path);
  return value === undefined || typeof value === "object" ? "" : String(value);
}

/** Reads a number deep inside an object; 0 if there is none. */
export function countAt(object: JsonObject, path: string): number {
  const value = at(object, path);
  return typeof value === "number" ? value : 0;
}

/** Reads a list of objects deep inside an object. */
export function objectsAt(object: JsonObject, path: string): JsonObject[] {
  const value = at(object, path);
  return Array.isArray(value) ? value.filter(isObject) : [];
}
