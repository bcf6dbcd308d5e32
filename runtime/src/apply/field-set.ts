// Field sets in the format of `metadata.managedFields` (FieldsV1), and operations that add and remove fields.
import { isDeepStrictEqual } from "node:util";
import { type JsonValue, isJsonObject } from "@gen-operator/schema";
import { type FieldsV1, type SchemaNode, keyOfListItem } from "./owned-fields.js";

/** An entry of `metadata.managedFields`. */
export type ManagedEntry = { readonly [member in "manager" | "operation" | "subresource"]?: string } & {
  readonly fieldsV1?: FieldsV1;
};

/** The path of a field as elements of FieldsV1, such as `f:spec` or `k:{"name":"web"}`. */
export type FieldPath = readonly string[];

const SELF = ".";

/** Returns the set with a field added, without the fields below it. */
export function withField(fields: FieldsV1, [element, ...rest]: FieldPath): FieldsV1 {
  if (element === undefined) return fields;
  const name = findElement(fields, element) ?? element;
  const child = fields[name];
  if (rest.length > 0) {
    // A node without children is a member of the set, and must remain one.
    const isMember = child !== undefined && Object.keys(child).length === 0;
    return { ...fields, [name]: withField(isMember ? { [SELF]: {} } : (child ?? {}), rest) };
  }
  const isLeaf = child === undefined || Object.keys(child).length === 0;
  return { ...fields, [name]: isLeaf ? {} : { [SELF]: {}, ...child } };
}

/** Returns the set without a field and the fields below it, or undefined if it would be empty. */
export function withoutField(fields: FieldsV1, path: FieldPath): FieldsV1 | undefined {
  return changeAt(fields, path, () => undefined);
}

/** Returns the set without a field but with the fields below it, or undefined if it would be empty. */
export function withoutMember(fields: FieldsV1, path: FieldPath): FieldsV1 | undefined {
  return changeAt(fields, path, ({ [SELF]: _, ...children }) =>
    Object.keys(children).length === 0 ? undefined : children,
  );
}

function changeAt(
  fields: FieldsV1,
  [element, ...rest]: FieldPath,
  change: (node: FieldsV1) => FieldsV1 | undefined,
): FieldsV1 | undefined {
  const name = element === undefined ? undefined : findElement(fields, element);
  if (name === undefined) return fields;
  const { [name]: child, ...others } = fields;
  const left = rest.length === 0 ? change(child!) : changeAt(child!, rest, change);
  if (left === child) return fields;
  const kept = left === undefined ? others : { ...fields, [name]: left };
  return Object.keys(kept).length === 0 ? undefined : kept;
}

/** Returns the union of two sets. */
export function unionOf(a: FieldsV1, b: FieldsV1): FieldsV1 {
  const [isLeafOfA, isLeafOfB] = [a, b].map((each) => Object.keys(each).length === 0);
  if (isLeafOfA || isLeafOfB) return isLeafOfA && isLeafOfB ? {} : { [SELF]: {}, ...a, ...b };
  const result: { [element: string]: FieldsV1 } = { ...a };
  for (const [element, child] of Object.entries(b)) {
    const name = findElement(a, element) ?? element;
    const known = a[name];
    result[name] = known === undefined || name === SELF ? child : unionOf(known, child);
  }
  return result;
}

/** Returns the subset at a path, or undefined if the set has no field there or below. */
export function fieldsAt(fields: FieldsV1, path: FieldPath): FieldsV1 | undefined {
  let node: FieldsV1 | undefined = fields;
  for (const element of path) {
    const name: string | undefined = node && findElement(node, element);
    node = name === undefined ? undefined : node![name];
  }
  return node;
}

/** Formats a path like the API server in a conflict of an apply, such as `spec.containers[name="web"].image`. */
export function fieldPathText(path: FieldPath): string {
  const texts = path.map((element) => {
    const [kind, rest] = [element.slice(0, 2), element.slice(2)];
    if (kind === "f:") return `.${rest}`;
    if (kind !== "k:") return `[=${rest}]`;
    const keys = Object.entries(JSON.parse(rest) as object).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    return `[${keys.join()}]`;
  });
  return texts.join("").replace(/^\./, "");
}

/** Returns the equal element of a set. Keys and values are JSON, so equal elements may be written differently. */
function findElement(fields: FieldsV1, element: string): string | undefined {
  if (Object.hasOwn(fields, element)) return element;
  const kind = element.slice(0, 2);
  if (kind !== "k:" && kind !== "v:") return undefined;
  const value: unknown = JSON.parse(element.slice(2));
  return Object.keys(fields).find(
    (name) => name.startsWith(kind) && isDeepStrictEqual(JSON.parse(name.slice(2)), value),
  );
}

// The places in an object that server-side apply distinguishes, with their live and desired values.

/** A path in an object: field names and list indexes. */
export type Path = readonly (string | number)[];

/** A value of a live object with the corresponding desired value. */
interface ComparedValue {
  readonly value: JsonValue;
  /** Undefined if the desired object does not contain it. */
  readonly desired: JsonValue | undefined;
  readonly schema: SchemaNode;
  readonly path: Path;
  /** The path in managed fields. */
  readonly fields: FieldPath;
}

/** A field of an object or an item of a list. */
export interface Place extends ComparedValue {
  readonly name: string | number;
  /** Whether it is a list map key of its item. */
  readonly isKey: boolean;
  /** The list map keys of an item. */
  readonly itemKeys?: readonly string[];
}

/** Returns the place of the whole object. */
export function rootPlace(value: JsonValue, desired: JsonValue, schema: SchemaNode): Place {
  return { name: "", value, desired, schema, path: [], fields: [], isKey: false };
}

// Fields that identify the object or are not written together with its content.
const NO_CONTENT: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "status"]);

/**
 * Returns whether a field is never removed heuristically: replicas may belong to an autoscaler, a change in the metadata of a pod template restarts
 * the pods, and list map keys identify an item.
 */
export function isProtected({ name, path, isKey }: Place): boolean {
  return (
    name === "replicas" || isKey || path.includes("metadata") || (path.length === 1 && NO_CONTENT.has(String(name)))
  );
}

/** Returns the places from the root along a path, as far as they exist. */
export function placesOn(steps: Path, root: Place): Place[] {
  const places = [root];
  for (const step of steps) {
    const next = childrenOf(places.at(-1)!).find(({ name }) => name === step);
    if (next === undefined) break;
    places.push(next);
  }
  return places;
}

/** Returns the fields below a place that the desired object does not contain, the nearest first. */
export function unstatedBelow(place: Place): Place[] {
  const found: Place[] = [];
  for (let level = [place]; level.length > 0;) {
    const children = level.flatMap(childrenOf);
    found.push(...children.filter(({ desired }) => desired === undefined));
    level = children.filter(({ desired }) => desired !== undefined);
  }
  return found;
}

/** Returns the fields of an object or the items of an associative list. */
export function childrenOf({ value, desired, schema, path, fields, itemKeys }: Place): Place[] {
  if (schema.merge === "leaf") return [];
  if (isJsonObject(value)) {
    const stated = isJsonObject(desired) ? desired : {};
    return Object.entries(value).map(([key, child]) => ({
      ...{ name: key, value: child, desired: stated[key], schema: schema.property(key) },
      ...{ path: [...path, key], fields: [...fields, `f:${key}`], isKey: itemKeys?.includes(key) === true },
    }));
  }
  const isKeyed = schema.merge === "listMap" || schema.merge === "listSet";
  if (!isKeyed || !Array.isArray(value)) return [];
  const items = Array.isArray(desired) ? desired : [];
  const stated = new Map(items.map((item) => [keyOfListItem(item, schema), item]));
  const keys = schema.merge === "listMap" ? schema.listMapKeys : undefined;
  return value.map((item, index) => ({
    ...{ name: index, value: item, desired: stated.get(keyOfListItem(item, schema)), schema: schema.items },
    ...{ path: [...path, index], fields: [...fields, elementOf(item, keys, schema.items)], isKey: false },
    itemKeys: schema.listMapKeys,
  }));
}

/** Returns the element of a list item: its keys, with schema defaults for absent ones, or its value if the list has no keys. */
function elementOf(item: JsonValue, keys: readonly string[] | undefined, schema?: SchemaNode): string {
  if (keys === undefined || !isJsonObject(item)) return `v:${JSON.stringify(item)}`;
  const values = keys.map((name) => [name, item[name] ?? schema?.property(name).default]);
  return `k:${JSON.stringify(Object.fromEntries(values))}`;
}

// An apply leaves behind a field that its manager owned and no longer applies if another manager also owns it. It also does so if the surrounding
// list or map was atomic when it was applied and no longer is, because then no manager owns its items.

/** A field that the live object still contains. */
export interface LeftField {
  readonly path: Path;
  readonly fields: FieldPath;
  readonly value: JsonValue;
}

interface OwnedSets {
  /** The fields that the manager owned before the apply. */
  readonly before: FieldsV1 | undefined;
  readonly after: FieldsV1 | undefined;
}

interface LeftPlace extends ComparedValue, OwnedSets {}

/** Returns the fields of an object that an apply left behind. Those of one list are in reverse order. */
export function findLeftBehind(
  value: JsonValue,
  desired: JsonValue,
  owned: OwnedSets & { readonly schema: SchemaNode },
): LeftField[] {
  return leftBelow({ value, desired, ...owned, path: [], fields: [] });
}

function leftBelow(place: LeftPlace): LeftField[] {
  const { before, after } = place;
  if (before === undefined) return [];
  const isWhole = isLeafSet(before);
  // Owned as a whole before and in parts now: the managed fields no longer show who owned the parts.
  const isTakenApart = isWhole && after !== undefined && !isLeafSet(after) && wasAtomic(place);
  if (isWhole && !isTakenApart) return [];
  return leftChildrenOf(place)
    .reverse()
    .flatMap((child) => {
      const wasOwned = isTakenApart || child.before !== undefined;
      if (!wasOwned) return [];
      if (child.desired !== undefined) return leftBelow(child);
      const { path, fields } = child;
      if (child.after !== undefined) return [];
      const isMember = isTakenApart || isLeafSet(child.before!) || Object.hasOwn(child.before!, SELF);
      return isMember ? [{ path, fields, value: child.value }] : leftBelow(child);
    });
}

// An object that was applied empty looks the same, although its manager owned none of its fields. This may be a struct with defaults, or labels and
// annotations. The entries of any other map are values that a client has set; those of other managers are kept.
function wasAtomic({ value, schema: { merge }, path }: LeftPlace): boolean {
  if (Array.isArray(value)) return true;
  return isJsonObject(value) && (merge === "leaf" || (merge === "map" && path[0] !== "metadata"));
}

// Unlike childrenOf, also distinguishes the items of an atomic list, by their owned keys, because an earlier schema may apply.
function leftChildrenOf({ value, desired, before, after, path, fields, schema }: LeftPlace): LeftPlace[] {
  const ownedAt = (set: FieldsV1 | undefined, element: string) => set && fieldsAt(set, [element]);
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

function keysIn(fields: FieldsV1 | undefined): readonly string[] | undefined {
  const element = Object.keys(fields ?? {}).find((name) => name.startsWith("k:"));
  return element === undefined ? undefined : Object.keys(JSON.parse(element.slice(2)) as object);
}

function isLeafSet(fields: FieldsV1): boolean {
  return Object.keys(fields).every((name) => name === SELF);
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
