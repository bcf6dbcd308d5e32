import type { SchemaNode } from "./schema-node.js";

/** What a manager applied (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management). */
export interface FieldNode {
  /** Whether the path itself is owned, not only something below it. */
  readonly isMember: boolean;
  readonly fields: ReadonlyMap<string, FieldNode>;
  /** Items of lists of type map, by `keyOfListItem`. */
  readonly items: ReadonlyMap<ItemKey, FieldNode>;
  /** Items of lists of type set, by `valueKeyOf` the value. */
  readonly values: ReadonlyMap<string, FieldNode>;
}

/** What tells the items of a list apart: the value of the key of most, or a text made of several. */
export type ItemKey = string | number | boolean;

const NONE: ReadonlyMap<never, FieldNode> = new Map<never, FieldNode>();

/** What is owned, with nothing below it. */
export const LEAF: FieldNode = { isMember: true, fields: NONE, items: NONE, values: NONE };

/** What a manager owns who applied nothing. */
export const NOTHING: FieldNode = { isMember: false, fields: NONE, items: NONE, values: NONE };

type FieldsV1 = { readonly [key: string]: FieldsV1 };

// Objects of one kind mostly have the same fields, but for the uid of their owner: trees without it are shared.
const CACHE_SIZE = 1000;
const shapes = new Map<string, FieldNode>();
// An object that is looked at again is found by its own text, whose hash V8 keeps.
const objects = new Map<string, FieldNode>();
const OWNERS = '"f:ownerReferences":{';
const ONE_OWNER = /"k:\{\\"uid\\":\\"([^"\\]+)\\"\}":\{\}\}/y;

/** Parses FieldsV1 text; throws if it is none. */
export function parseOwnedFields(fieldsV1: string): FieldNode {
  return memoised(objects, fieldsV1, () => parseObject(fieldsV1));
}

function parseObject(fieldsV1: string): FieldNode {
  const start = fieldsV1.indexOf(OWNERS) + OWNERS.length;
  ONE_OWNER.lastIndex = start;
  const owner = start < OWNERS.length ? null : ONE_OWNER.exec(fieldsV1);
  if (owner === null) return parseShape(fieldsV1);
  const shared = parseShape(`${fieldsV1.slice(0, start)}${fieldsV1.slice(start + owner[0].length - 1)}`);
  const metadata = shared.fields.get("metadata");
  if (metadata?.fields.get("ownerReferences") !== LEAF) return nodeOf(JSON.parse(fieldsV1) as FieldsV1, false);
  const items = new Map([[itemKeyOf({ uid: owner[1] }), LEAF]]);
  const ownerReferences: FieldNode = { isMember: false, fields: NONE, items, values: NONE };
  const withOwner = { ...metadata, fields: new Map(metadata.fields).set("ownerReferences", ownerReferences) };
  return { ...shared, fields: new Map(shared.fields).set("metadata", withOwner) };
}

/** Returns the finalizers that a manager applied. */
export function appliedFinalizers(fieldsV1: string): string[] {
  if (!fieldsV1.includes('"f:finalizers"')) return [];
  const finalizers = parseOwnedFields(fieldsV1).fields.get("metadata")?.fields.get("finalizers");
  return [...(finalizers?.values.keys() ?? [])].map((key) => JSON.parse(key) as string);
}

function parseShape(fieldsV1: string): FieldNode {
  return memoised(shapes, fieldsV1, () => nodeOf(JSON.parse(fieldsV1) as FieldsV1, false));
}

function memoised(cache: Map<string, FieldNode>, text: string, parse: () => FieldNode): FieldNode {
  let node = cache.get(text);
  if (node === undefined) {
    node = parse();
    if (cache.size >= CACHE_SIZE) cache.clear();
    cache.set(text, node);
  }
  return node;
}

function nodeOf(fields: FieldsV1, isLeafMember: boolean): FieldNode {
  const names = Object.keys(fields);
  if (names.length === 0) return isLeafMember ? LEAF : NOTHING;
  const node = {
    isMember: false,
    fields: new Map<string, FieldNode>(),
    items: new Map<ItemKey, FieldNode>(),
    values: new Map<string, FieldNode>(),
  };
  for (const name of names) {
    const child = fields[name] as FieldsV1;
    if (name === ".") node.isMember = true;
    else if (name.startsWith("f:")) node.fields.set(name.slice(2), nodeOf(child, true));
    else if (name.startsWith("k:")) node.items.set(itemKeyOf(JSON.parse(name.slice(2)) as object), nodeOf(child, true));
    else if (name.startsWith("v:")) node.values.set(valueKeyOf(JSON.parse(name.slice(2))), nodeOf(child, true));
    else throw new Error(`unknown path element "${name}" in managed fields`);
  }
  return node;
}

/** Tells whether nothing below the path is owned. */
export function isLeaf({ fields, items, values }: FieldNode): boolean {
  return fields.size === 0 && items.size === 0 && values.size === 0;
}

// Nearly every list has one key only.
function itemKeyOf(keys: object): ItemKey {
  const entries = Object.entries(keys) as [string, unknown][];
  if (entries.length === 1 && isKeyValue(entries[0]![1])) return entries[0]![1];
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).reduce((key, [name, value]) => key + keyPart(name, value), "");
}

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

// One of several keys as a part of their text; parts stand in the order of their names.
function keyPart(name: string, value: unknown): string {
  // No text that is a key of its own begins so.
  return typeof value === "string"
    ? `\0${name}"${value.length}:${value}`
    : `\0${name} ${isKeyValue(value) ? value : JSON.stringify(value)}`;
}

function isKeyValue(value: unknown): value is ItemKey {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

/** Returns a value of a set as one string. */
export function valueKeyOf(value: unknown): string {
  return JSON.stringify(value);
}
