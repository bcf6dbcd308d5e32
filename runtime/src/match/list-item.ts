import { isKeyValue, keyPart, valueKeyOf, type ItemKey } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

/** Returns what tells an item of a list from the others: its keys, with their defaults, in a list of type map, else the item itself. */
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

/** The items of a list, to be found by their keys. */
export class ListItems<Item> {
  readonly list: readonly Item[];
  readonly #schema: SchemaNode;
  #places: Map<ItemKey, number> | undefined;

  constructor(list: readonly Item[], schema: SchemaNode) {
    this.list = list;
    this.#schema = schema;
  }

  /** Returns where an item stands; mostly it is where it is expected, if there are no others than the `count` that are looked for. */
  placeOf(key: ItemKey, { expected, count }: { expected: number; count: number }): number | undefined {
    if (this.#places === undefined && this.list.length === count) {
      const item = this.list[expected];
      if (item !== undefined && keyOfListItem(item, this.#schema) === key) return expected;
    }
    this.#places ??= new Map(this.list.map((each, place) => [keyOfListItem(each, this.#schema), place]));
    return this.#places.get(key);
  }
}
