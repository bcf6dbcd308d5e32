import type { ObjectKey } from "../base/kubernetes-object.js";

/** Returns the keys that a function of the user gave, which may have no types; `wrong` words the error for what is none. */
export function checkedKeys(given: Iterable<unknown>, wrong: (type: string) => string): readonly ObjectKey[] {
  const keys = [...given];
  const index = keys.findIndex((key) => typeof key !== "string");
  if (index === -1) return keys as ObjectKey[];
  throw new TypeError(wrong(typeNameOf(keys[index])));
}

/** Names the type of a value, for an error. */
export function typeNameOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}
