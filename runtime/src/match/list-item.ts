import { isKeyValue, keyPart, valueKeyOf, type ItemKey } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

/** Returns the key of a list item: of a list of type map the values of its keys, with their defaults, else the item itself. */
export function keyOfListItem(item: unknown, { merge, listMapKeys, items }: SchemaNode): ItemKey {
  if (merge !== "listMap" || typeof item !== "object" || item === null || Array.isArray(item)) return valueKeyOf(item);
  const fields = item as { [name: string]: unknown };
  if (listMapKeys.length === 1) {
    const name = listMapKeys[0]!;
    const value = fields[name] ?? items.property(name).default;
    if (isKeyValue(value)) return value;
  }
  let key = "";
  for (const name of listMapKeys) {
    const value = fields[name] ?? items.property(name).default;
    if (value !== undefined) key += keyPart(name, value);
  }
  return key;
}
