import { isObject, type JsonObject, type JsonValue } from "../json.js";
import { FieldSet, type FieldEntry } from "./fields/field-set.js";
import { fieldElement, type PathElement } from "./fields/path-element.js";
import { elementOfItem } from "./merge/list-item.js";
import {
  definiteShape,
  memberType,
  shapeFor,
  type ListShape,
  type MapShape,
  type MergeType,
} from "./types/type-model.js";

const NOTHING: FieldEntry = { isMember: false, below: FieldSet.empty };

/**
 * Lists the fields that an object sets, as an apply of it owns them.
 *
 * Scalars and atomic values are members; structs are not; map keys and list items are, beside what is below them. A null or an
 * empty map is a member, an empty merging list is not.
 */
export function fieldSetOf(type: MergeType, value: JsonValue): FieldSet {
  return entryOf(type, value).below;
}

function entryOf(type: MergeType, value: JsonValue): FieldEntry {
  switch (definiteShape(type, shapeFor(type, value))) {
    case "scalar":
      return FieldSet.leaf;
    case "list": {
      const list = type.list as ListShape;
      if (list.isAtomic) return FieldSet.leaf;
      return Array.isArray(value) ? entryOfItems(list, value) : NOTHING;
    }
    case "map": {
      const map = type.map as MapShape;
      if (map.isAtomic) return FieldSet.leaf;
      return isObject(value) ? entryOfMembers(map, value) : NOTHING;
    }
  }
}

function entryOfMembers(map: MapShape, object: JsonObject): FieldEntry {
  const entries = new Map<PathElement, FieldEntry>();
  for (const name of Object.keys(object)) {
    const value = object[name] as JsonValue;
    const field = map.fields.get(name);
    const entry = entryOf(field?.type() ?? memberType(map, name), value);
    const isMember = entry.isMember || field === undefined || value === null || isEmptyMap(value);
    if (isMember || !entry.below.isEmpty) {
      const stored = isMember === entry.isMember ? entry : { isMember, below: entry.below };
      entries.set(field?.element ?? fieldElement(name), stored);
    }
  }
  return { isMember: false, below: FieldSet.from(entries) };
}

function entryOfItems(list: ListShape, items: JsonValue[]): FieldEntry {
  const itemType = list.item();
  const entries = new Map<PathElement, FieldEntry>();
  items.forEach((item, index) => {
    const element = elementOfItem(list, item, index);
    // Only stored objects can hold an element twice; then nothing below it has an owner.
    const below = entries.has(element) ? FieldSet.empty : entryOf(itemType, item).below;
    entries.set(element, below.isEmpty ? FieldSet.leaf : { isMember: true, below });
  });
  return { isMember: false, below: FieldSet.from(entries) };
}

function isEmptyMap(value: JsonValue): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}
