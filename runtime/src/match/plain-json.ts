import type { JsonValue } from "../base/kubernetes-object.js";
import type { JsonObject } from "./same-value.js";

/**
 * Returns a value as JSON carries it: without undefined members, and with the results of `toJSON` methods.
 *
 * A plain value is returned itself. Nearly all values are plain, so that this is cheaper than to write and read JSON.
 */
export function plainOf(value: unknown): JsonValue | undefined {
  if (typeof value !== "object" || value === null)
    return typeof value === "function" ? undefined : (value as JsonValue);
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return plainOf((value as { toJSON: () => unknown }).toJSON());
  return Array.isArray(value) ? plainList(value) : plainObject(value as JsonObject);
}

function plainList(list: readonly unknown[]): JsonValue[] {
  let copy: JsonValue[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const plain = plainOf(list[index]) ?? null;
    if (plain !== list[index]) (copy ??= [...list] as JsonValue[])[index] = plain;
  }
  return copy ?? (list as JsonValue[]);
}

function plainObject(object: JsonObject): JsonObject {
  let copy: JsonObject | undefined;
  for (const name of Object.keys(object)) {
    const member: unknown = object[name];
    const plain = plainOf(member);
    if (plain === member && plain !== undefined) continue;
    copy ??= { ...object };
    if (plain === undefined) delete copy[name];
    else copy[name] = plain;
  }
  return copy ?? object;
}
