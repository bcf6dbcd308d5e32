import { itemKeyOf, valueKeyOf } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

/** Returns what tells an item of a list from the others: its keys, with their defaults, in a list of type map, else the item itself. */
export function keyOfListItem(item: unknown, { merge, listMapKeys, items }: SchemaNode): string {
  if (merge !== "listMap" || typeof item !== "object" || item === null || Array.isArray(item)) return valueKeyOf(item);
  const keys: { [name: string]: unknown } = {};
  for (const name of listMapKeys) {
    const value = (item as { [name: string]: unknown })[name] ?? items.property(name).default;
    if (value !== undefined) keys[name] = value;
  }
  return itemKeyOf(keys);
}
