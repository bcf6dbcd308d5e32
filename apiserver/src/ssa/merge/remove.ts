import { isObject, setMember, type JsonObject, type JsonValue } from "../../json.js";
import { FieldSet, type FieldEntry } from "../fields/field-set.js";
import { fieldElement, type PathElement } from "../fields/path-element.js";
import {
  definiteShape,
  memberType,
  shapeFor,
  type ListShape,
  type MapShape,
  type MergeType,
} from "../types/type-model.js";
import { elementOfItem } from "./list-item.js";

/**
 * Removes the members of a set, with all below them, from a value.
 *
 * A container of which nothing is left becomes null where it stands; it is gone only if it is a member itself.
 */
export function removeFields(type: MergeType, value: JsonValue, fields: FieldSet): JsonValue {
  if (fields.isEmpty) return value;
  switch (definiteShape(type, shapeFor(type, value))) {
    case "scalar":
      return value;
    case "list":
      return removeItems(type.list as ListShape, value, fields);
    case "map":
      return removeMembers(type.map as MapShape, value, fields);
  }
}

/** Makes every declared field that a set only passes through a member too; map keys and list items stay as they are. */
export function withNamedFields(type: MergeType, fields: FieldSet): FieldSet {
  if (fields.isEmpty) return fields;
  const entries = new Map<PathElement, FieldEntry>();
  let hasChanged = false;
  for (const [element, entry] of fields.entries) {
    const named = entry.below.isEmpty ? entry : withNamedBelow(type, element, entry);
    if (named !== entry) hasChanged = true;
    entries.set(element, named);
  }
  return hasChanged ? FieldSet.from(entries) : fields;
}

function withNamedBelow(type: MergeType, element: PathElement, entry: FieldEntry): FieldEntry {
  const name = element.slice(2);
  const isField = element.startsWith("f:");
  const isMember = entry.isMember || (isField && type.map?.fields.has(name) === true);
  const inner = isField
    ? type.map && memberType(type.map, name)
    : element.startsWith("k:")
      ? type.list?.item()
      : undefined;
  const below = inner === undefined ? entry.below : withNamedFields(inner, entry.below);
  return isMember === entry.isMember && below === entry.below ? entry : { isMember, below };
}

function removeItems(list: ListShape, value: JsonValue, fields: FieldSet): JsonValue {
  if (!Array.isArray(value) || list.isAtomic) return null;
  const itemType = list.item();
  const kept: JsonValue[] = [];
  value.forEach((item, index) => {
    const entry = fields.entries.get(elementOfItem(list, item, index));
    if (entry?.isMember === true) return;
    kept.push(entry === undefined ? item : removeFields(itemType, item, entry.below));
  });
  return kept.length === 0 ? null : kept;
}

function removeMembers(map: MapShape, value: JsonValue, fields: FieldSet): JsonValue {
  if (!isObject(value) || map.isAtomic) return null;
  const kept: JsonObject = {};
  for (const name of Object.keys(value)) {
    const member = value[name] as JsonValue;
    const entry = fields.entries.get(map.fields.get(name)?.element ?? fieldElement(name));
    if (entry?.isMember === true) continue;
    setMember(kept, name, entry === undefined ? member : removeFields(memberType(map, name), member, entry.below));
  }
  return Object.keys(kept).length === 0 ? null : kept;
}
