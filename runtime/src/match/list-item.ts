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

/** Finds the items of a list by their keys. */
export class ListItems<Item> {
  readonly list: readonly Item[];
  readonly #schema: SchemaNode;
  #places: Map<ItemKey, number> | undefined;

  constructor(list: readonly Item[], schema: SchemaNode) {
    this.list = list;
    this.#schema = schema;
  }

  /** Returns the index of an item. Mostly it is the expected one, if the list has the `count` items that are looked for and no others. */
  placeOf(key: ItemKey, { expected, count }: { expected: number; count: number }): number | undefined {
    if (this.#places === undefined && this.list.length === count) {
      const item = this.list[expected];
      if (item !== undefined && keyOfListItem(item, this.#schema) === key) return expected;
    }
    this.#places ??= new Map(this.list.map((each, place) => [keyOfListItem(each, this.#schema), place]));
    return this.#places.get(key);
  }
}
