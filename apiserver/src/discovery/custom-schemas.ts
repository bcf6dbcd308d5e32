// The schemas of custom resources and of lists as kube-apiserver publishes them: with what it adds to those of a definition.
import { decodedVersions } from "../builtin/versions.js";
import type { CustomOrigin, ServedType } from "../builtin/served-type.js";
import { arrayAt, isObject, objectAt, type JsonObject, type JsonValue } from "../json.js";

/** How a schema is referred to, before its name. */
export const REFERENCE = "#/components/schemas/";
/** The schema of the metadata of objects. */
export const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/** The schema of the options of a deletion. */
export const DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
/** The schema of the metadata of lists. */
export const LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

// What kubectl explain shows of these fields (Kubernetes 1.36).
const CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const TYPE_META = {
  apiVersion: {
    type: "string",
    description:
      "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the " +
      `latest internal value, and may reject unrecognized values. More info: ${CONVENTIONS}#resources`,
  },
  kind: {
    type: "string",
    description:
      "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the " +
      `client submits requests to. Cannot be updated. In CamelCase. More info: ${CONVENTIONS}#types-kinds`,
  },
};
const METADATA = {
  description: `Standard object's metadata. More info: ${CONVENTIONS}#metadata`,
  allOf: [{ $ref: REFERENCE + OBJECT_META }],
};
const EMBEDDED = {
  apiVersion: {
    type: "string",
    description:
      "apiVersion defines the versioned schema of this representation of an object. " +
      `More info: ${CONVENTIONS}#resources`,
  },
  kind: {
    type: "string",
    description:
      "kind is a string value representing the type of this object. In CamelCase. " +
      `More info: ${CONVENTIONS}#types-kinds`,
  },
  metadata: METADATA,
};

/** Returns the schema of the options of a deletion, of its part that the documents of built-in kinds have, too. */
export function deleteOptionsSchema(common: JsonObject): JsonObject {
  const kinds = decodedVersions().map(({ group, version }) => ({ group, kind: "DeleteOptions", version }));
  return { ...common, "x-kubernetes-group-version-kind": kinds };
}

/** Returns the schema of a kind of custom resources. */
export function publishedSchema({ group, version, kind }: ServedType, custom: CustomOrigin): JsonObject {
  const schema = completed(custom.schema) as JsonObject;
  return {
    ...schema,
    type: "object",
    properties: { ...objectAt(schema, "properties"), ...TYPE_META, metadata: METADATA },
    "x-kubernetes-group-version-kind": [{ group, version, kind }],
    ...selectableFieldsOf(custom),
  };
}

/** Returns the schema of the lists of a kind, whose own schema has this name. */
export function listSchema(type: ServedType, custom: CustomOrigin, itemName: string): JsonObject {
  const { group, version, listKind, kind, plural } = type;
  const item = { $ref: REFERENCE + itemName };
  const gvk = { "x-kubernetes-group-version-kind": [{ group, version, kind: listKind }] };
  return {
    description: `${listKind} is a list of ${kind}`,
    type: "object",
    required: ["items"],
    properties: {
      ...TYPE_META,
      metadata: {
        description: `Standard list metadata. More info: ${CONVENTIONS}#types-kinds`,
        allOf: [{ $ref: REFERENCE + LIST_META }],
      },
      items: { description: `List of ${plural}. More info: ${CONVENTIONS}`, type: "array", items: item },
    },
    ...gvk,
    ...selectableFieldsOf(custom),
  };
}

function selectableFieldsOf({ version }: CustomOrigin): JsonObject {
  const fields = (arrayAt(version, "selectableFields") ?? []).filter(isObject);
  if (fields.length === 0) return {};
  const paths = fields.map(({ jsonPath }) => ({ fieldPath: String(jsonPath).replace(/^\./, "") }));
  return { "x-kubernetes-selectable-fields": paths };
}

/** A copy in which embedded resources have the fields of every resource, and what may be a number or text says so. */
function completed(schema: JsonValue): JsonValue {
  if (!isObject(schema)) return schema;
  const { properties, items, additionalProperties } = schema;
  const copy: JsonObject = { ...schema };
  if (isObject(properties))
    copy["properties"] = Object.fromEntries(Object.entries(properties).map(([name, node]) => [name, completed(node)]));
  if (items !== undefined) copy["items"] = completed(items);
  if (additionalProperties !== undefined) copy["additionalProperties"] = completed(additionalProperties);
  if (schema["x-kubernetes-int-or-string"] === true && schema["anyOf"] === undefined && schema["allOf"] === undefined)
    copy["anyOf"] = [{ type: "integer" }, { type: "string" }];
  if (schema["x-kubernetes-embedded-resource"] !== true) return copy;
  const required = (arrayAt(schema, "required") ?? []).map(String);
  const missing = ["kind", "apiVersion"].filter((name) => !required.includes(name));
  return {
    ...copy,
    properties: { ...objectAt(copy, "properties"), ...EMBEDDED },
    required: [...required, ...missing],
  };
}
