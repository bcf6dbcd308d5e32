// What an apply did not remove although its manager owned it before and does not state it any more: another manager owns it as well, or the list
// or map around it was atomic when it was applied and is not any more, so that nobody owns what is in it.
import { isJsonObject, type JsonValue } from "@gen-operator/schema";
import { findElement, type FieldPath, type FieldsV1 } from "./field-set.js";
import type { Path } from "./object-places.js";
import type { SchemaNode } from "./schema-node.js";

/** A field that is still there. */
export interface LeftField {
  readonly path: Path;
  readonly fields: FieldPath;
  readonly value: JsonValue;
}

interface Owned {
  /** What the manager owned before, and owns now. */
  readonly before: FieldsV1 | undefined;
  readonly after: FieldsV1 | undefined;
}

interface Place extends Owned {
  readonly value: JsonValue;
  readonly desired: JsonValue | undefined;
  readonly path: Path;
  readonly fields: FieldPath;
  readonly schema: SchemaNode;
}

/** Returns the fields of an object that an apply left behind, those of one list from the last to the first. */
export function findLeftBehind(
  value: JsonValue,
  desired: JsonValue,
  { schema, ...owned }: Owned & Pick<Place, "schema">,
): LeftField[] {
  return leftBelow({ value, desired, ...owned, schema, path: [], fields: [] });
}

function leftBelow(place: Place): LeftField[] {
  const { before, after } = place;
  if (before === undefined) return [];
  const isWhole = isLeaf(before);
  // Owned as a whole before, and in parts now: the API server does not say any more whose the parts were.
  const isTakenApart = isWhole && after !== undefined && !isLeaf(after) && wasAtomic(place);
  if (isWhole && !isTakenApart) return [];
  return childrenOf(place)
    .reverse()
    .flatMap((child) => {
      const wasOwned = isTakenApart || child.before !== undefined;
      if (!wasOwned) return [];
      if (child.desired !== undefined) return leftBelow(child);
      const { path, fields } = child;
      if (child.after !== undefined) return [];
      const isMember = isTakenApart || isLeaf(child.before!) || Object.hasOwn(child.before!, ".");
      return isMember ? [{ path, fields, value: child.value }] : leftBelow(child);
    });
}

// An object that was applied empty owned nothing in it, which looks the same. A struct may have been, with defaults in it, and so may labels and
// annotations; the members of any other map are values that some client stated, and what other managers own stays.
function wasAtomic({ value, schema: { merge }, path }: Place): boolean {
  if (Array.isArray(value)) return true;
  return isJsonObject(value) && (merge === "leaf" || (merge === "map" && path[0] !== "metadata"));
}

function childrenOf({ value, desired, before, after, path, fields, schema }: Place): Place[] {
  const ownedAt = (set: FieldsV1 | undefined, element: string | undefined) => {
    const name = set === undefined || element === undefined ? undefined : findElement(set, element);
    return name === undefined ? undefined : set![name];
  };
  if (isJsonObject(value)) {
    const stated = isJsonObject(desired) ? desired : {};
    return Object.entries(value).map(([name, child]) => {
      const element = `f:${name}`;
      const owned = { before: ownedAt(before, element), after: ownedAt(after, element) };
      const at = { path: [...path, name], fields: [...fields, element], schema: schema.property(name) };
      return { value: child, desired: stated[name], ...owned, ...at };
    });
  }
  if (!Array.isArray(value)) return [];
  const items = Array.isArray(desired) ? desired : [];
  const keys = keysIn(after) ?? keysIn(before);
  return value.map((item, index) => {
    const element = elementOf(item, keys);
    const twin = items.find((each) => elementOf(each, keys) === element);
    const owned = { before: ownedAt(before, element), after: ownedAt(after, element) };
    const at = { path: [...path, index], fields: [...fields, element], schema: schema.items };
    return { value: item, desired: twin, ...owned, ...at };
  });
}

// The schema may be an earlier one: what is owned tells how items are told apart.
function keysIn(fields: FieldsV1 | undefined): readonly string[] | undefined {
  const element = Object.keys(fields ?? {}).find((name) => name.startsWith("k:"));
  return element === undefined ? undefined : Object.keys(JSON.parse(element.slice(2)) as object);
}

function elementOf(item: JsonValue, keys: readonly string[] | undefined): string {
  if (keys === undefined || !isJsonObject(item)) return `v:${JSON.stringify(item)}`;
  return `k:${JSON.stringify(Object.fromEntries(keys.map((name) => [name, item[name]])))}`;
}

function isLeaf(fields: FieldsV1): boolean {
  return Object.keys(fields).every((name) => name === ".");
}

/** Finds a field in an object. */
export function resolveField(root: JsonValue, fields: FieldPath): LeftField | undefined {
  const path: (string | number)[] = [];
  let value: JsonValue | undefined = root;
  for (const element of fields) {
    let step: string | number;
    if (element.startsWith("f:")) step = element.slice(2);
    else {
      if (!Array.isArray(value)) return undefined;
      const keys = keysIn({ [element]: {} });
      step = value.findIndex((item) => elementOf(item, keys) === element);
    }
    path.push(step);
    value = (value as { readonly [name: string]: JsonValue } | undefined)?.[step];
    if (value === undefined) return undefined;
  }
  return { path, fields, value };
}
