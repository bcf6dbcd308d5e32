import { itemKeyOf, keyOfSingle, valueKeyOf } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

/** Returns what tells an item of a list from the others: its keys, with their defaults, in a list of type map, else the item itself. */
export function keyOfListItem(item: unknown, { merge, listMapKeys, items }: SchemaNode): string {
  if (merge !== "listMap" || typeof item !== "object" || item === null || Array.isArray(item)) return valueKeyOf(item);
  const fields = item as { [name: string]: unknown };
  const valueOf = (name: string) => fields[name] ?? items.property(name).default;
  if (listMapKeys.length === 1) {
    const value = valueOf(listMapKeys[0]!);
    if (value !== undefined) return keyOfSingle(listMapKeys[0]!, value);
  }
  const keys: { [name: string]: unknown } = {};
  for (const name of listMapKeys) {
    const value = valueOf(name);
    if (value !== undefined) keys[name] = value;
  }
  return itemKeyOf(keys);
}
