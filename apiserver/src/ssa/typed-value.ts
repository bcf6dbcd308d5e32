// Typed values of structured-merge-diff: validation, field sets, and comparison. Error messages are those of Kubernetes, with values formatted as in
// Go.
import { quote } from "../errors/go-format.js";
import { type JsonObject, type JsonValue, deepEqual, isObject, memberOf } from "../json.js";
import {
  type FieldEntry,
  FieldSet,
  FieldSetBuilder,
  type PathElement,
  fieldElement,
  keyElement,
  pathElementText,
  valueElement,
} from "./field-set.js";

/** How values of a schema are merged. A type may allow several shapes; the value determines which one applies. */
export interface MergeType {
  readonly scalar?: ScalarKind;
  readonly list?: ListShape;
  readonly map?: MapShape;
  /** True for undeclared values, whose shape is deduced from the value. */
  readonly isDeduced?: boolean;
}

/** Allowed values of a scalar. */
export type ScalarKind = "string" | "numeric" | "boolean" | "untyped";

/** A type that is compiled on first use, because schemas can be recursive. */
export type LazyType = () => MergeType;

/** A list: atomic, or merged item by item. */
export interface ListShape {
  readonly isAtomic: boolean;
  /** Fields that identify an item; empty for atomic lists and sets. */
  readonly keys: readonly string[];
  readonly item: LazyType;
}

/** A struct or map: atomic, or merged field by field. */
export interface MapShape {
  readonly isAtomic: boolean;
  readonly fields: ReadonlyMap<string, StructField>;
  /** Type of undeclared members; absent if there can be none. */
  readonly rest?: LazyType;
}

/** A declared field. */
export interface StructField {
  readonly element: PathElement;
  readonly type: LazyType;
  /** Default in the schema; only used to complete the keys of list items. */
  readonly default?: JsonValue;
}

/** The shape of a value; "any" for a null or absent value of a type with several shapes. */
type Shape = "map" | "list" | "scalar" | "any";

const deducedLazy: LazyType = () => deducedType;

/** Type of undeclared values: scalars of any kind, atomic lists, and maps merged by key. */
export const deducedType: MergeType = {
  scalar: "untyped",
  list: { isAtomic: true, keys: [], item: deducedLazy },
  map: { isAtomic: false, fields: new Map(), rest: deducedLazy },
  isDeduced: true,
};

/** Type of untyped values that are always atomic. */
export const untypedAtomicType: MergeType = {
  scalar: "untyped",
  list: { isAtomic: true, keys: [], item: () => untypedAtomicType },
  map: { isAtomic: true, fields: new Map(), rest: () => untypedAtomicType },
};

/** Returns the type of a member; undeclared members of a struct are deduced. */
export function memberType(map: MapShape, name: string): MergeType {
  return map.fields.get(name)?.type() ?? map.rest?.() ?? deducedType;
}

/** Returns the shape of `type` that matches the value. */
export function shapeFor(type: MergeType, value: JsonValue | undefined): Shape {
  const fitting = shapeOfValue(value);
  if (fitting !== undefined && type[fitting] !== undefined) return fitting;
  const shapes = (["map", "scalar", "list"] as const).filter((shape) => type[shape] !== undefined);
  return shapes.length === 1 ? (shapes[0] as Shape) : "any";
}

/** Resolves "any" as structured-merge-diff does: map, then scalar, then list. */
export function definiteShape(type: MergeType, shape: Shape): "map" | "list" | "scalar" {
  if (shape !== "any") return shape;
  return type.map !== undefined ? "map" : type.scalar !== undefined ? "scalar" : "list";
}

function shapeOfValue(value: JsonValue | undefined): "map" | "list" | "scalar" | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object") return "scalar";
  return Array.isArray(value) ? "list" : "map";
}

/** Validates a value; returns errors as `.path: message`. `allowsDuplicates` is set for stored objects. */
export function checkValue(type: MergeType, value: JsonValue, options: { allowsDuplicates: boolean }): string[] {
  const errors: string[] = [];
  checkAt({ type, parent: undefined, element: "", errors, allowsDuplicates: options.allowsDuplicates }, value);
  return errors;
}

/** Joins errors of checkValue as Kubernetes does. */
export function typedErrorText(errors: readonly string[]): string {
  return errors.length === 1 ? (errors[0] as string) : `errors:\n${errors.map((error) => `  ${error}`).join("\n")}`;
}

interface Check {
  readonly type: MergeType;
  /** Parent of the value; the path is only built for errors. */
  readonly parent: Check | undefined;
  readonly element: PathElement;
  readonly errors: string[];
  readonly allowsDuplicates: boolean;
}

function below(parent: Check, type: MergeType, element: PathElement): Check {
  return { type, parent, element, errors: parent.errors, allowsDuplicates: parent.allowsDuplicates };
}

function pathOf({ parent, element }: Check): string {
  return parent === undefined ? "" : pathOf(parent) + pathElementText(element);
}

function checkAt(check: Check, value: JsonValue): void {
  // null is valid for every type.
  if (value === null) return;
  const { type } = check;
  switch (definiteShape(type, shapeFor(type, value))) {
    case "map":
      if (typeof value !== "object" || Array.isArray(value)) report(check, `expected map, got &{${goText(value)}}`);
      else checkMap(check, type.map as MapShape, value);
      return;
    case "list":
      if (!Array.isArray(value)) report(check, `expected list, got &{${goText(value)}}`);
      else checkList(check, type.list as ListShape, value);
      return;
    case "scalar":
      checkScalar(check, value);
  }
}

function checkScalar(check: Check, value: Exclude<JsonValue, null>): void {
  const kind = check.type.scalar;
  if (kind === "untyped") {
    if (typeof value === "object") report(check, `expected any scalar, got &{${goText(value)}}`);
  } else if (kind === "numeric") {
    if (typeof value !== "number") report(check, `expected numeric (int or float), got ${goType(value)}`);
  } else if (typeof value !== kind && kind === "boolean") {
    report(check, `expected boolean, got &{${goText(value)}}`);
  } else if (typeof value !== kind) {
    report(check, `expected ${kind}, got &value.valueUnstructured{Value:${goSyntax(value)}}`);
  }
}

function checkList(check: Check, list: ListShape, items: JsonValue[]): void {
  const seen = new Set<string>();
  const item = list.item();
  for (const [index, value] of items.entries()) {
    let element = `i:${index}`;
    if (!list.isAtomic) {
      const identity = identifyItem(list, value);
      if ("problem" in identity) return report(check, `element ${index}: ${identity.problem}`);
      element = identity.element;
      if (seen.has(element) && !check.allowsDuplicates) {
        report(check, `duplicate entries for key ${pathElementText(element)}`);
      }
      seen.add(element);
    }
    if (isTrivial(item, value)) continue;
    checkAt(below(check, item, element), value);
  }
}

function checkMap(check: Check, map: MapShape, object: JsonObject): void {
  for (const name of Object.keys(object)) {
    const value = object[name] as JsonValue;
    const field = map.fields.get(name);
    const type = (field?.type ?? map.rest)?.();
    if (type !== undefined && isTrivial(type, value)) continue;
    const inner = below(check, type ?? deducedType, field?.element ?? fieldElement(name));
    if (type === undefined) report(inner, "field not declared in schema");
    else checkAt(inner, value);
  }
}

/** Fast path for values that cannot be invalid. */
function isTrivial(type: MergeType, value: JsonValue): boolean {
  if (value === null || type.isDeduced === true) return true;
  if (typeof value === "object") return false;
  const kind = type.scalar;
  return kind === "untyped" || kind === typeof value || (kind === "numeric" && typeof value === "number");
}

function report(check: Check, message: string): void {
  const path = pathOf(check);
  check.errors.push(path === "" ? message : `${path}: ${message}`);
}

function goType(value: Exclude<JsonValue, null>): string {
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  return Array.isArray(value) ? "[]interface {}" : "map[string]interface {}";
}

function goText(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  return `map[${Object.keys(value)
    .sort()
    .map((name) => `${name}:${goText(value[name] as JsonValue)}`)
    .join(" ")}]`;
}

function goSyntax(value: JsonValue): string {
  if (value === null) return "interface {}(nil)";
  if (typeof value === "string") return quote(value);
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  return `map[string]interface {}{${Object.keys(value)
    .sort()
    .map((name) => `${quote(name)}:${goSyntax(value[name] as JsonValue)}`)
    .join(", ")}}`;
}

const NOTHING: FieldEntry = { isMember: false, below: FieldSet.empty };

/**
 * Returns the fields that an object sets, which an apply of it owns.
 *
 * Scalars and atomic values are members, structs are not; map keys and list items are members in addition to the paths below them. A null or an empty
 * map is a member, an empty list that merges is not.
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
    // Only stored objects can contain duplicates; fields below them are not tracked.
    const below = entries.has(element) ? FieldSet.empty : entryOf(itemType, item).below;
    entries.set(element, below.isEmpty ? FieldSet.leaf : { isMember: true, below });
  });
  return { isMember: false, below: FieldSet.from(entries) };
}

function isEmptyMap(value: JsonValue): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

/** Differences between two versions of an object. */
export interface Comparison {
  readonly removed: FieldSet;
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

/**
 * Compares two versions of an object field by field.
 *
 * Leaves are scalars, atomic values, and containers that are empty on both sides. A container that only one side has is reported together with its
 * contents. The order of items matters in atomic lists only.
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

/** Removes fields and everything below them from a comparison. */
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

/** The old and new value; undefined if absent. */
type Sides = readonly [before: JsonValue | undefined, after: JsonValue | undefined];

function compareAt(walk: Walk, type: MergeType, sides: Sides): void {
  const [before, after] = sides;
  // A merge shares unchanged subtrees, so identity is a fast path.
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

/** Compares both sides as values of one shape; returns whether they are leaves. */
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
      // Duplicates on both sides are compared as one value.
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

/** The path element of a list item, or an error message. */
type ItemIdentity = { element: PathElement } | { problem: string };

/** Identifies an item of a set or keyed list; missing key fields are set to their defaults. */
function identifyItem(list: ListShape, item: JsonValue): ItemIdentity {
  return list.keys.length > 0 ? identifyKeyed(list, item) : identifyByValue(item);
}

/** Returns the path element of an item; an item without an identity is identified by its index. */
export function elementOfItem(list: ListShape, item: JsonValue, index: number): PathElement {
  const identity = identifyItem(list, item);
  return "element" in identity ? identity.element : `i:${index}`;
}

function identifyKeyed(list: ListShape, item: JsonValue): ItemIdentity {
  if (item === null) return { problem: "associative list with keys may not have a null element" };
  if (!isObject(item)) return { problem: "associative list with keys may not have non-map elements" };
  const fields = list.item().map?.fields;
  const keys: JsonObject = {};
  let hasKey = false;
  for (const key of list.keys) {
    // null is a valid key.
    const given = memberOf(item, key);
    const value = given === undefined ? fields?.get(key)?.default : given;
    if (value === undefined) continue;
    keys[key] = value;
    hasKey = true;
  }
  if (hasKey) return { element: keyElement(keys) };
  const names = `[${list.keys.map(quote).join(" ")}]`;
  const problem = `associative list with keys has an element that omits all key fields ${names}`;
  return { problem: `${problem} (and doesn't have default values for any key fields)` };
}

function identifyByValue(item: JsonValue): ItemIdentity {
  if (item === null) return { problem: "associative list without keys has an element that's an explicit null" };
  if (Array.isArray(item)) return { problem: "not supported: associative list with lists as elements" };
  if (isObject(item)) return { problem: "associative list without keys has an element that's a map type" };
  return { element: valueElement(item) };
}
