import type { JsonValue } from "../base/kubernetes-object.js";

/**
 * Returns a value as JSON would carry it: without members that are undefined, and with what has a `toJSON` replaced.
 *
 * What is plain already is returned itself, which nearly everything is: this is cheaper than to write and read JSON.
 */
export function plainOf(value: unknown): JsonValue | undefined {
  if (typeof value !== "object" || value === null)
    return typeof value === "function" ? undefined : (value as JsonValue);
  if ("toJSON" in value && typeof value.toJSON === "function") return plainOf((value.toJSON as () => unknown)());
  if (Array.isArray(value)) {
    const items = value.map((item) => plainOf(item) ?? null);
    return items.every((item, index) => item === value[index]) ? (value as JsonValue[]) : items;
  }
  let copy: { [key: string]: JsonValue } | undefined;
  for (const [name, member] of Object.entries(value)) {
    const plain = plainOf(member);
    if (plain === member && plain !== undefined) continue;
    copy ??= { ...(value as { [key: string]: JsonValue }) };
    if (plain === undefined) delete copy[name];
    else copy[name] = plain;
  }
  return copy ?? (value as { [key: string]: JsonValue });
}
