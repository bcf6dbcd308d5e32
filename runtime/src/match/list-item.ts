import { isKeyValue, keyPart, valueKeyOf, type ItemKey } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

/** Returns the key of a list item: of a list of type map the values of its keys, with their defaults, else the item itself. */
export function keyOfListItem(item: unknown, { merge, listMapKeys, items }: SchemaNode): ItemKey {
  if (merge !== "listMap" || typeof item !== "object" || item === null || Array.isArray(item)) return valueKeyOf(item);
  let key = "";
  for (const name of listMapKeys) {
    const value = (item as { [name: string]: unknown })[name] ?? items.property(name).default;
    if (listMapKeys.length === 1 && isKeyValue(value)) return value;
    if (value !== undefined) key += keyPart(name, value);
  }
  return key;
}
