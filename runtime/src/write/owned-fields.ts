/**
 * The fields that a manager applied, as a tree; read from FieldsV1
 * (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management).
 */
export interface FieldNode {
  /** Whether the path itself is owned, not only something below it. */
  readonly isMember: boolean;
  /** By field name. */
  readonly fields: ReadonlyMap<string, FieldNode>;
  /** Items of lists of type map, by `itemKeyOf` their keys. */
  readonly items: ReadonlyMap<string, FieldNode>;
  /** Items of lists of type set, by `valueKeyOf` the value. */
  readonly values: ReadonlyMap<string, FieldNode>;
}

const NONE: ReadonlyMap<string, FieldNode> = new Map();
const LEAF: FieldNode = { isMember: true, fields: NONE, items: NONE, values: NONE };

/** What a manager owns who applied nothing. */
export const NOTHING: FieldNode = { isMember: false, fields: NONE, items: NONE, values: NONE };

type FieldsV1 = { readonly [key: string]: FieldsV1 };

// Objects of one kind mostly have the same fields, but for the uid of their owner: trees without it are shared.
const CACHE_SIZE = 1000;
const cache = new Map<string, FieldNode>();
const ONE_OWNER = /"f:ownerReferences":\{"k:\{\\"uid\\":\\"([^"\\]+)\\"\}":\{\}\}/;

/** Parses FieldsV1 text; throws if it is none. */
export function parseOwnedFields(fieldsV1: string): FieldNode {
  const owner = ONE_OWNER.exec(fieldsV1);
  if (owner === null) return parseShared(fieldsV1);
  const shared = parseShared(fieldsV1.replace(owner[0], '"f:ownerReferences":{}'));
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

function parseShared(fieldsV1: string): FieldNode {
  const known = cache.get(fieldsV1);
  if (known !== undefined) return known;
  const node = nodeOf(JSON.parse(fieldsV1) as FieldsV1, false);
  if (cache.size >= CACHE_SIZE) cache.clear();
  cache.set(fieldsV1, node);
  return node;
}

function nodeOf(fields: FieldsV1, isLeafMember: boolean): FieldNode {
  const names = Object.keys(fields);
  if (names.length === 0) return isLeafMember ? LEAF : NOTHING;
  const node = {
    isMember: false,
    fields: new Map<string, FieldNode>(),
    items: new Map<string, FieldNode>(),
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

/** Returns the key of a list item as one string, whatever the order of its fields. */
export function itemKeyOf(keys: object): string {
  const entries = Object.entries(keys);
  if (entries.length === 1) return keyOfSingle(...entries[0]!);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(entries);
}

/** Returns the key of a list item that has one key only, which nearly all have. */
export function keyOfSingle(name: string, value: unknown): string {
  return typeof value === "string" ? `${name}"${value}` : `${name} ${JSON.stringify(value)}`;
}

/** Returns a value of a set as one string. */
export function valueKeyOf(value: unknown): string {
  return JSON.stringify(value);
}
