import type { JsonValue } from "../base/kubernetes-object.js";
import type { JsonObject } from "./same-value.js";

/** Returns a value as JSON carries it, or itself if it is plain, as nearly all values are: this is cheaper than to write and read JSON. */
export function plainOf(value: unknown): JsonValue | undefined {
  if (typeof value !== "object" || value === null)
    return typeof value === "function" ? undefined : (value as JsonValue);
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return plainOf((value as { toJSON: () => unknown }).toJSON());
  if (!Array.isArray(value)) return plainObject(value as JsonObject);
  const plain = Array.from(value, (item) => plainOf(item) ?? null);
  return plain.every((item, index) => item === value[index]) ? (value as JsonValue[]) : plain;
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
