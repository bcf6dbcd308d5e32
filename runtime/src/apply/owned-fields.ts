import type { JsonObject, JsonValue } from "@gen-operator/schema";
import type { ResourceDefinition, Schema } from "../base/kubernetes-object.js";

/** The fields that a manager has applied (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management). */
export interface FieldNode {
  /** Whether the path itself is owned, and not only something below it. */
  readonly isMember: boolean;
  readonly fields: ReadonlyMap<string, FieldNode>;
  /** Items of lists of type map, by `keyOfListItem`. */
  readonly items: ReadonlyMap<ItemKey, FieldNode>;
  /** Items of lists of type set, by `valueKeyOf` the value. */
  readonly values: ReadonlyMap<string, FieldNode>;
}

/** Identifies an item of a list: the value of its key or, for several keys, a string that combines them. */
export type ItemKey = string | number | boolean;

const NONE: ReadonlyMap<never, FieldNode> = new Map<never, FieldNode>();

/** An owned path with nothing below it. */
export const LEAF: FieldNode = { isMember: true, fields: NONE, items: NONE, values: NONE };

/** The fields of a manager that has applied nothing. */
export const NOTHING: FieldNode = { isMember: false, fields: NONE, items: NONE, values: NONE };

/** A field set in the format of `metadata.managedFields`: the owned elements below a path, such as `f:spec`. */
export interface FieldsV1 {
  readonly [element: string]: FieldsV1;
}

// Most objects of a kind have the same fields, except for the UID of their owner. Trees are shared by leaving it out.
const CACHE_SIZE = 1000;
const shapes = new Map<string, FieldNode>();
// Repeated lookups of the same object use its own string, whose hash V8 caches.
const objects = new Map<string, FieldNode>();
const OWNERS = '"f:ownerReferences":{';
const ONE_OWNER = /"k:\{\\"uid\\":\\"([^"\\]+)\\"\}":\{\}\}/y;

/** Parses FieldsV1. Throws if the text is invalid. */
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

/** Returns the finalizers that a manager has applied. */
export function appliedFinalizers(fieldsV1: string): string[] {
  if (!fieldsV1.includes('"f:finalizers"')) return [];
  const finalizers = parseOwnedFields(fieldsV1).fields.get("metadata")?.fields.get("finalizers");
  return [...(finalizers?.values.keys() ?? [])].map((key) => JSON.parse(key) as string);
}

/** Returns the owned part of a value in the form of an apply (ExtractInto in client-go), or undefined if the value is absent. */
export function extractOwned(
  value: JsonValue | undefined,
  owned: FieldNode,
  schema: SchemaNode,
): JsonValue | undefined {
  if (typeof value !== "object" || value === null || schema.merge === "leaf") return value;
  if (Array.isArray(value)) {
    // The list had another type when the schema was compiled, so its items cannot be identified.
    if (schema.merge === "deduced") return value;
    if (owned.items.size === 0) return value.filter((item) => owned.values.has(valueKeyOf(item)));
    return value.flatMap((item) => {
      const node = owned.items.get(keyOfListItem(item, schema));
      const kept = node && extractOwned(item, node, schema.items);
      return kept === undefined ? [] : [kept];
    });
  }
  const kept = [...owned.fields].flatMap(([name, node]) => {
    const field = extractOwned((value as JsonObject)[name], node, schema.property(name));
    return field === undefined ? [] : [[name, field] as const];
  });
  return Object.fromEntries(kept);
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

/** Returns whether nothing below the path is owned. */
export function isLeaf({ fields, items, values }: FieldNode): boolean {
  return fields.size === 0 && items.size === 0 && values.size === 0;
}

// Almost every list has a single key.
function itemKeyOf(keys: object): ItemKey {
  const entries = Object.entries(keys) as [string, unknown][];
  if (entries.length === 1 && isKeyValue(entries[0]![1])) return entries[0]![1];
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).reduce((key, [name, value]) => key + keyPart(name, value), "");
}

/** Returns the key of a list item: for a list of type map, the values of its keys, including defaults; otherwise, the item itself. */
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

// Serializes one of several keys. The parts are joined in the order of the key names.
function keyPart(name: string, value: unknown): string {
  // No string that is a key by itself starts like this.
  return typeof value === "string"
    ? `\0${name}"${value.length}:${value}`
    : `\0${name} ${isKeyValue(value) ? value : JSON.stringify(value)}`;
}

function isKeyValue(value: unknown): value is ItemKey {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

/** Returns the value of a set item as a string. */
export function valueKeyOf(value: unknown): string {
  return JSON.stringify(value);
}

/**
 * How server-side apply merges a value.
 *
 * - `leaf`: scalars, atomic lists and atomic maps, which are owned and replaced as a whole.
 * - `struct`: an object with declared fields.
 * - `map`: an object with arbitrary keys. Each key is owned, as well as the fields below it.
 * - `listMap`, `listSet`: associative lists, whose items are owned individually.
 * - `deduced`: no schema. Objects merge like maps, everything else is a leaf.
 */
type MergeKind = "leaf" | "struct" | "map" | "listMap" | "listSet" | "deduced";

/** A schema with resolved `$ref`s, and the properties that the matcher needs. */
export interface SchemaNode {
  readonly merge: MergeKind;
  readonly isQuantity: boolean;
  /** Whether the API server normalizes the value as a time, as in built-in kinds. */
  readonly isTime: boolean;
  /** Whether the value is base64, which the API server decodes and encodes again in built-in kinds. */
  readonly isBytes: boolean;
  readonly isBuiltin: boolean;
  /** Whether the API server omits empty values when it stores the object: in built-in kinds, with exceptions. */
  readonly dropsEmpty: boolean;
  /** Whether its fields are declared by name. */
  readonly isStruct: boolean;
  readonly default: JsonValue | undefined;
  /** Sorted by name. */
  readonly listMapKeys: readonly string[];
  property(name: string): SchemaNode;
  readonly items: SchemaNode;
}

// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
const OBJECT_META: Schema = {
  type: "object",
  properties: {
    labels: { type: "object", additionalProperties: { type: "string" } },
    annotations: { type: "object", additionalProperties: { type: "string" } },
    finalizers: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
    ownerReferences: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["uid"],
      items: { type: "object", "x-kubernetes-map-type": "atomic", properties: {} },
    },
  },
};

const roots = new WeakMap<ResourceDefinition, SchemaNode>();

/** Returns the root of a kind's schema, with `metadata` as defined by Kubernetes. */
export function schemaOf(definition: ResourceDefinition): SchemaNode {
  let root = roots.get(definition);
  if (root === undefined) {
    const { definitions = {}, ...schema } = definition.schema;
    const properties = { ...schema.properties, metadata: OBJECT_META };
    const isBuiltin = !definition.isCustom;
    root = createSchemaNode({ ...schema, type: "object", properties }, { definitions, isBuiltin });
    roots.set(definition, root);
  }
  return root;
}

interface Surroundings {
  readonly definitions: { readonly [name: string]: Schema };
  readonly isBuiltin: boolean;
  readonly isValueOfMap?: boolean;
}

function createSchemaNode(schema: Schema | undefined, surroundings: Surroundings): SchemaNode {
  const { definitions, isBuiltin, isValueOfMap = false } = surroundings;
  const { $ref: name = "", ...stated } = schema ?? {};
  const resolved = name === "" ? schema : { ...definitions[name], ...stated };
  // Values of a map are kept even if they are empty.
  const keepsZero = isValueOfMap || resolved?.["x-gen-operator-keeps-zero"] === true;
  const isMap = resolved?.properties === undefined;
  const properties = new Map<string, SchemaNode>();
  let items: SchemaNode | undefined;
  return {
    merge: mergeKindOf(resolved, isBuiltin),
    // A custom resource may use this format for a string. The API server normalizes only quantities of built-in kinds.
    isQuantity: resolved?.format === "quantity" && resolved.type === undefined,
    isTime: isBuiltin && resolved?.format === "date-time",
    isBytes: isBuiltin && resolved?.format === "byte",
    isBuiltin,
    dropsEmpty: isBuiltin && !keepsZero && isMap,
    isStruct: !isMap,
    default: resolved?.default,
    listMapKeys: [...(resolved?.["x-kubernetes-list-map-keys"] ?? [])].sort(),
    property(property) {
      // All keys of a map share a node, because there may be any number of them.
      const key = isMap ? "" : property;
      let node = properties.get(key);
      if (node === undefined) {
        const own = declaredProperty(resolved, property);
        node = createSchemaNode(own, { definitions, isBuiltin, isValueOfMap: isMap });
        properties.set(key, node);
      }
      return node;
    },
    get items() {
      return (items ??= createSchemaNode(resolved?.items, { definitions, isBuiltin }));
    },
  };
}

function declaredProperty(schema: Schema | undefined, name: string): Schema | undefined {
  const { properties = {}, additionalProperties } = schema ?? {};
  if (Object.hasOwn(properties, name)) return properties[name];
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

// Derives merge types from OpenAPI and structural schemas.
function mergeKindOf(schema: Schema | undefined, isBuiltin: boolean): MergeKind {
  if (schema === undefined) return "deduced";
  const { type, properties, additionalProperties } = schema;
  if (type === "array") {
    const listType = schema["x-kubernetes-list-type"];
    return listType === "map" ? "listMap" : listType === "set" ? "listSet" : "leaf";
  }
  if (type === "object" || properties !== undefined || additionalProperties !== undefined) {
    if (schema["x-kubernetes-map-type"] === "atomic") return "leaf";
    if (properties !== undefined) return "struct";
    if (typeof additionalProperties === "object") return "map";
    // RawExtension: any value, replaced as a whole.
    return isBuiltin && additionalProperties === undefined ? "leaf" : "deduced";
  }
  return type === undefined && schema["x-kubernetes-int-or-string"] !== true && !schema.format ? "deduced" : "leaf";
}
