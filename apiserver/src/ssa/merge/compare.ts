import { deepEqual, isObject, memberOf, type JsonObject, type JsonValue } from "../../json.js";
import { FieldSetBuilder, type FieldSet } from "../fields/field-set.js";
import { fieldElement, type PathElement } from "../fields/path-element.js";
import {
  definiteShape,
  memberType,
  shapeFor,
  type ListShape,
  type MapShape,
  type MergeType,
  type Shape,
} from "../types/type-model.js";
import { elementOfItem } from "./list-item.js";

/** What differs between two versions of an object. */
export interface Comparison {
  readonly removed: FieldSet;
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

/**
 * Compares two versions of an object field by field.
 *
 * Leaves are scalars, atomic values and containers that are empty on both sides. A container that only one side has counts
 * itself and what is in it. The order of items matters in atomic lists only.
 */
export function compareValuesOf(type: MergeType, before: JsonValue, after: JsonValue): Comparison {
  const walk: Walk = {
    path: [],
    removed: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    added: new FieldSetBuilder(),
  };
  compareAt(walk, type, [before, after]);
  return { removed: walk.removed.build(), modified: walk.modified.build(), added: walk.added.build() };
}

/** Takes fields, with all below them, out of a comparison. */
export function excludeFields(comparison: Comparison, fields: FieldSet): Comparison {
  if (fields.isEmpty) return comparison;
  return {
    removed: comparison.removed.differenceWithBelow(fields),
    modified: comparison.modified.differenceWithBelow(fields),
    added: comparison.added.differenceWithBelow(fields),
  };
}

interface Walk {
  readonly path: PathElement[];
  readonly removed: FieldSetBuilder;
  readonly modified: FieldSetBuilder;
  readonly added: FieldSetBuilder;
}

/** The value before and after; undefined where there is none. */
type Sides = readonly [before: JsonValue | undefined, after: JsonValue | undefined];

function compareAt(walk: Walk, type: MergeType, sides: Sides): void {
  const [before, after] = sides;
  // A merge shares what it does not change.
  if (before === after) return;
  const shapeBefore = shapeFor(type, before);
  const shapeAfter = shapeFor(type, after);
  let wasLeaf: boolean;
  if (after === undefined) wasLeaf = compareShape(walk, type, { shape: shapeBefore, sides });
  else {
    if (before !== undefined && shapeBefore !== shapeAfter) compareShape(walk, type, { shape: shapeBefore, sides });
    wasLeaf = compareShape(walk, type, { shape: shapeAfter, sides });
  }
  if (wasLeaf) return;
  if (before === undefined) walk.added.insert(walk.path);
  else if (after === undefined) walk.removed.insert(walk.path);
}

/** Compares both sides as values of one shape; tells whether they were leaves. */
function compareShape(walk: Walk, type: MergeType, { shape, sides }: { shape: Shape; sides: Sides }): boolean {
  const [before, after] = sides;
  switch (definiteShape(type, shape)) {
    case "scalar":
      return compareLeaf(walk, sides);
    case "list": {
      const list = type.list as ListShape;
      const items = [Array.isArray(before) ? before : [], Array.isArray(after) ? after : []] as const;
      if (list.isAtomic || items.every((side) => side.length === 0)) return compareLeaf(walk, sides);
      compareItems(walk, list, items);
      return false;
    }
    case "map": {
      const map = type.map as MapShape;
      const objects = [isObject(before) ? before : {}, isObject(after) ? after : {}] as const;
      if (map.isAtomic || objects.every((side) => Object.keys(side).length === 0)) return compareLeaf(walk, sides);
      compareMembers(walk, map, objects);
      return false;
    }
  }
}

function compareLeaf(walk: Walk, [before, after]: Sides): boolean {
  if (before === undefined) walk.added.insert(walk.path);
  else if (after === undefined) walk.removed.insert(walk.path);
  else if (!deepEqual(before, after)) walk.modified.insert(walk.path);
  return true;
}

function compareMembers(walk: Walk, map: MapShape, [before, after]: readonly [JsonObject, JsonObject]): void {
  const compareMember = (name: string): void => {
    const sides: Sides = [memberOf(before, name), memberOf(after, name)];
    if (sides[0] === sides[1]) return;
    const field = map.fields.get(name);
    walk.path.push(field?.element ?? fieldElement(name));
    compareAt(walk, field?.type() ?? memberType(map, name), sides);
    walk.path.pop();
  };
  for (const name of Object.keys(before)) compareMember(name);
  for (const name of Object.keys(after)) if (!Object.hasOwn(before, name)) compareMember(name);
}

function compareItems(walk: Walk, list: ListShape, [before, after]: readonly [JsonValue[], JsonValue[]]): void {
  const itemType = list.item();
  const itemsBefore = groupItems(list, before);
  const itemsAfter = groupItems(list, after);
  for (const element of new Set([...itemsBefore.keys(), ...itemsAfter.keys()])) {
    const olds = itemsBefore.get(element) ?? [];
    const news = itemsAfter.get(element) ?? [];
    walk.path.push(element);
    if (olds.length <= 1 && news.length <= 1) compareAt(walk, itemType, [olds[0], news[0]]);
    else if (olds.length > 1 && news.length > 1) {
      // Duplicates on both sides are one value together.
      if (!deepEqual(olds, news)) walk.modified.insert(walk.path);
    } else if (olds.length > 1) {
      if (news.length > 0) compareAt(walk, itemType, [undefined, news[0]]);
      walk.removed.insert(walk.path);
    } else {
      if (olds.length > 0) compareAt(walk, itemType, [olds[0], undefined]);
      walk.added.insert(walk.path);
    }
    walk.path.pop();
  }
}

function groupItems(list: ListShape, items: JsonValue[]): Map<PathElement, JsonValue[]> {
  const groups = new Map<PathElement, JsonValue[]>();
  items.forEach((item, index) => {
    const element = elementOfItem(list, item, index);
    const group = groups.get(element);
    if (group === undefined) groups.set(element, [item]);
    else group.push(item);
  });
  return groups;
}
