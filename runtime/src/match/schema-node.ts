import type { JsonValue } from "../base/kubernetes-object.js";
import type { ResourceDefinition, Schema } from "../base/resource-definition.js";

/**
 * How server-side apply merges a value.
 *
 * - `leaf`: scalars, atomic lists and atomic maps: owned and replaced as a whole.
 * - `struct`: an object with declared fields.
 * - `map`: an object whose keys are data; each key is owned as well as what is below it.
 * - `listMap`, `listSet`: lists whose items are told apart.
 * - `deduced`: no schema: objects merge like maps, everything else is a leaf.
 */
export type MergeKind = "leaf" | "struct" | "map" | "listMap" | "listSet" | "deduced";

/** A schema with its `$ref` resolved, and what the matcher asks of it. */
export interface SchemaNode {
  readonly merge: MergeKind;
  readonly isQuantity: boolean;
  /** Whether the API server writes it in its own way, as it does with times in built-in kinds. */
  readonly isTime: boolean;
  /** Whether it is base64, which the API server decodes and encodes again in built-in kinds. */
  readonly isBytes: boolean;
  readonly isBuiltin: boolean;
  /** Whether what is empty is left out when it is stored: in built-in kinds, but for what is kept although it is. */
  readonly dropsEmpty: boolean;
  /** Whether its members are known by name. */
  readonly isStruct: boolean;
  readonly default: JsonValue | undefined;
  /** In the order of their names. */
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

/** Returns the root of a kind's schema, with `metadata` as Kubernetes defines it. */
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
  // What stands under a key of a map is kept, whatever it is.
  const keepsZero = isValueOfMap || resolved?.["x-gen-operator-keeps-zero"] === true;
  const isMap = resolved?.properties === undefined;
  const properties = new Map<string, SchemaNode>();
  let items: SchemaNode | undefined;
  return {
    merge: mergeKindOf(resolved, isBuiltin),
    // A custom resource may call a string so; the server normalises only those of built-in kinds.
    isQuantity: resolved?.format === "quantity" && resolved.type === undefined,
    isTime: isBuiltin && resolved?.format === "date-time",
    isBytes: isBuiltin && resolved?.format === "byte",
    isBuiltin,
    dropsEmpty: isBuiltin && !keepsZero && isMap,
    isStruct: !isMap,
    default: resolved?.default,
    listMapKeys: [...(resolved?.["x-kubernetes-list-map-keys"] ?? [])].sort(),
    property(property) {
      // All keys of a map share one node: they are data, and there may be any number of them.
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

// kubernetes-api-semantics: OpenAPI and structural schemas to merge types.
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
    // RawExtension: anything, replaced as a whole.
    return isBuiltin && additionalProperties === undefined ? "leaf" : "deduced";
  }
  return type === undefined && schema["x-kubernetes-int-or-string"] !== true && !schema.format ? "deduced" : "leaf";
}
