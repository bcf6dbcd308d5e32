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
  readonly default: JsonValue | undefined;
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

// What the API server fills in although no schema states it, where it matters: inside of lists and objects that are replaced as a whole
// (1.36, recorded in fixtures/live-objects).
const UNSTATED_DEFAULTS: { readonly [definition: string]: { readonly [property: string]: JsonValue } } = {
  NetworkPolicyPort: { protocol: "TCP" },
  ObjectFieldSelector: { apiVersion: "v1" },
  PersistentVolumeClaim: { apiVersion: "v1", kind: "PersistentVolumeClaim", status: { phase: "Pending" } },
  PersistentVolumeClaimSpec: { volumeMode: "Filesystem" },
  ResourceFieldSelector: { divisor: "0" },
  ServiceAccountTokenProjection: { expirationSeconds: 3600 },
};

const roots = new WeakMap<ResourceDefinition, SchemaNode>();

/** Returns the root of a kind's schema, with `metadata` as Kubernetes defines it. */
export function schemaOf(definition: ResourceDefinition): SchemaNode {
  let root = roots.get(definition);
  if (root === undefined) {
    const { definitions = {}, ...schema } = definition.schema;
    const properties = { ...schema.properties, metadata: OBJECT_META };
    root = createSchemaNode({ ...schema, type: "object", properties }, definitions);
    roots.set(definition, root);
  }
  return root;
}

function createSchemaNode(schema: Schema | undefined, definitions: { readonly [name: string]: Schema }): SchemaNode {
  const resolved = schema?.$ref === undefined ? schema : { ...definitions[schema.$ref], ...withoutRef(schema) };
  const unstated = UNSTATED_DEFAULTS[schema?.$ref ?? ""] ?? {};
  const properties = new Map<string, SchemaNode>();
  let items: SchemaNode | undefined;
  return {
    merge: mergeKindOf(resolved),
    // A custom resource may call a string so; the server normalises only those of built-in kinds.
    isQuantity: resolved?.format === "quantity" && resolved.type === undefined,
    default: resolved?.default,
    listMapKeys: resolved?.["x-kubernetes-list-map-keys"] ?? [],
    property(name) {
      let node = properties.get(name);
      if (node === undefined) {
        const declared = resolved?.properties;
        const { additionalProperties } = resolved ?? {};
        const other = typeof additionalProperties === "object" ? additionalProperties : undefined;
        const own = declared !== undefined && Object.hasOwn(declared, name) ? declared[name] : other;
        node = createSchemaNode(
          Object.hasOwn(unstated, name) ? { ...own, default: unstated[name]! } : own,
          definitions,
        );
        properties.set(name, node);
      }
      return node;
    },
    get items() {
      return (items ??= createSchemaNode(resolved?.items, definitions));
    },
  };
}

function withoutRef({ $ref: _ref, ...rest }: Schema): Schema {
  return rest;
}

// kubernetes-api-semantics: OpenAPI and structural schemas to merge types.
function mergeKindOf(schema: Schema | undefined): MergeKind {
  if (schema === undefined) return "deduced";
  const { type, properties, additionalProperties } = schema;
  if (type === "array") {
    const listType = schema["x-kubernetes-list-type"];
    return listType === "map" ? "listMap" : listType === "set" ? "listSet" : "leaf";
  }
  if (type === "object" || properties !== undefined || additionalProperties !== undefined) {
    if (schema["x-kubernetes-map-type"] === "atomic") return "leaf";
    if (properties !== undefined) return "struct";
    return typeof additionalProperties === "object" ? "map" : "deduced";
  }
  return type === undefined && schema["x-kubernetes-int-or-string"] !== true && !schema.format ? "deduced" : "leaf";
}
