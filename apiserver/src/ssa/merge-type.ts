// Schema of ObjectMeta for custom resources, which CRD schemas do not contain. From meta/v1 of Kubernetes 1.36.
import { type JsonObject, type JsonValue, isObject, memberOf } from "../json.js";
import { fieldElement } from "./field-set.js";
import {
  type LazyType,
  type ListShape,
  type MapShape,
  type MergeType,
  type ScalarKind,
  type StructField,
  deducedType,
  untypedAtomicType,
} from "./typed-value.js";

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

const text: JsonObject = { type: "string" };
const time: JsonObject = { type: "string", format: "date-time" };
const int64: JsonObject = { type: "integer", format: "int64" };
const texts: JsonObject = { type: "object", additionalProperties: text };

const ownerReference: JsonObject = {
  type: "object",
  "x-kubernetes-map-type": "atomic",
  properties: {
    apiVersion: text,
    blockOwnerDeletion: { type: "boolean" },
    controller: { type: "boolean" },
    kind: text,
    name: text,
    uid: { type: "string", default: "" },
  },
};

const managedFieldsEntry: JsonObject = {
  type: "object",
  properties: {
    apiVersion: text,
    fieldsType: text,
    fieldsV1: { type: "object" },
    manager: text,
    operation: text,
    subresource: text,
    time,
  },
};

/** The schemas that the metadata of custom resources refers to, by name. */
const objectMetaSchemas: Record<string, unknown> = {
  [OBJECT_META]: {
    type: "object",
    properties: {
      annotations: texts,
      creationTimestamp: time,
      deletionGracePeriodSeconds: int64,
      deletionTimestamp: time,
      finalizers: { type: "array", items: text, "x-kubernetes-list-type": "set" },
      generateName: text,
      generation: int64,
      labels: texts,
      managedFields: { type: "array", items: managedFieldsEntry, "x-kubernetes-list-type": "atomic" },
      name: text,
      namespace: text,
      ownerReferences: {
        type: "array",
        items: ownerReference,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["uid"],
      },
      resourceVersion: text,
      selfLink: text,
      uid: text,
    },
  },
};

// Compiles OpenAPI v3 schemas of built-in kinds and structural schemas of CRDs into merge types.

const REF_PREFIX = "#/components/schemas/";
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension";

interface Compilation {
  readonly schemas: Record<string, unknown>;
  readonly named: Map<string, MergeType>;
  /** True below x-kubernetes-preserve-unknown-fields, which inline schemas inherit. */
  readonly preserves: boolean;
}

const compilations = new WeakMap<Record<string, unknown>, Compilation>();
const customResourceTypes = new WeakMap<object, MergeType>();

/** Returns the merge type of a named OpenAPI v3 schema, such as "io.k8s.api.apps.v1.Deployment". */
export function mergeTypeOfBuiltin(schemas: Record<string, unknown>, name: string): MergeType {
  let compilation = compilations.get(schemas);
  if (compilation === undefined) {
    compilation = { schemas, named: new Map(), preserves: false };
    compilations.set(schemas, compilation);
  }
  return namedType(compilation, name);
}

/** Returns the merge type of a custom resource; apiVersion, kind, and metadata are added to its schema. */
export function mergeTypeOfCustomResource(openAPIV3Schema: unknown): MergeType {
  if (!isObject(openAPIV3Schema)) return mergeTypeOfCustomResource(NO_SCHEMA);
  let type = customResourceTypes.get(openAPIV3Schema);
  if (type === undefined) {
    const compilation = { schemas: objectMetaSchemas, named: new Map<string, MergeType>(), preserves: false };
    type = inlineType(compilation, { ...openAPIV3Schema, "x-kubernetes-embedded-resource": true });
    customResourceTypes.set(openAPIV3Schema, type);
  }
  return type;
}

const NO_SCHEMA: JsonObject = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

function namedType(compilation: Compilation, name: string): MergeType {
  const known = compilation.named.get(name);
  if (known !== undefined) return known;
  const type = compileNamed(compilation, name);
  compilation.named.set(name, type);
  return type;
}

function compileNamed(compilation: Compilation, name: string): MergeType {
  if (name === QUANTITY) return { scalar: "untyped" };
  if (name === RAW_EXTENSION) return untypedAtomicType;
  const schema = compilation.schemas[name];
  return isObject(schema) ? inlineType({ ...compilation, preserves: false }, schema) : deducedType;
}

function lazyType(compilation: Compilation, schema: JsonValue | undefined): LazyType {
  let type: MergeType | undefined;
  return () => (type ??= typeOf(compilation, schema));
}

function typeOf(compilation: Compilation, schema: JsonValue | undefined): MergeType {
  if (!isObject(schema)) return deducedType;
  const name = refOf(schema);
  return name === undefined
    ? inlineType(compilation, schema)
    : withMapType(namedType(compilation, name), mapRelationship(schema));
}

// In OpenAPI v3.0, a $ref cannot have siblings, so it is wrapped in an allOf with one item if there are any.
function refOf(schema: JsonObject): string | undefined {
  const { $ref: direct, allOf } = schema;
  const wrapped = Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0]) ? allOf[0]["$ref"] : undefined;
  const ref = direct ?? wrapped;
  return typeof ref === "string" && ref !== "" ? ref.slice(ref.lastIndexOf("/") + 1) : undefined;
}

function withMapType(type: MergeType, relationship: "atomic" | "granular" | undefined): MergeType {
  if (relationship === undefined || type.map === undefined) return type;
  return { ...type, map: { ...type.map, isAtomic: relationship === "atomic" } };
}

function inlineType(outer: Compilation, schema: JsonObject): MergeType {
  const preserves = outer.preserves || schema["x-kubernetes-preserve-unknown-fields"] === true;
  const compilation = preserves === outer.preserves ? outer : { ...outer, preserves };
  switch (schema["type"]) {
    case "object":
      return { map: mapShape(compilation, schema) };
    case "array":
      return { list: listShape(compilation, schema) };
    case "integer":
    case "number":
      return { scalar: "numeric" };
    case "boolean":
      return { scalar: "boolean" };
    case "string":
      return { scalar: stringKind(schema["format"]) };
    default:
      return { scalar: "untyped", list: listShape(compilation, schema), map: mapShape(compilation, schema) };
  }
}

// A string with a format (date-time, int-or-string, quantity, …) may be encoded as a number; "byte" is base64 and is always a string.
function stringKind(format: JsonValue | undefined): ScalarKind {
  return format === undefined || format === "" || format === "byte" ? "string" : "untyped";
}

function mapShape(compilation: Compilation, schema: JsonObject): MapShape {
  const properties = memberOf(schema, "properties");
  const fields = new Map<string, StructField>();
  for (const [name, property] of Object.entries(isObject(properties) ? properties : {})) {
    fields.set(name, structField(compilation, name, property));
  }
  if (schema["x-kubernetes-embedded-resource"] === true) {
    for (const [name, property] of Object.entries(EMBEDDED)) {
      fields.set(name, structField(compilation, name, property));
    }
  }
  const isOpen = compilation.preserves || fields.size === 0;
  const rest = restType(compilation, memberOf(schema, "additionalProperties"), isOpen);
  const isAtomic = mapRelationship(schema) === "atomic";
  return rest === undefined ? { isAtomic, fields } : { isAtomic, fields, rest };
}

const EMBEDDED: JsonObject = {
  apiVersion: { type: "string" },
  kind: { type: "string" },
  metadata: { $ref: REF_PREFIX + OBJECT_META },
};

function structField(compilation: Compilation, name: string, schema: JsonValue): StructField {
  const field = { element: fieldElement(name), type: lazyType(compilation, schema) };
  const fallback = isObject(schema) ? memberOf(schema, "default") : undefined;
  return fallback === undefined || fallback === null ? field : { ...field, default: fallback };
}

function restType(compilation: Compilation, rest: JsonValue | undefined, isOpen: boolean): LazyType | undefined {
  if (rest === undefined) return isOpen ? () => deducedType : undefined;
  if (isObject(rest)) return lazyType(compilation, rest);
  return rest === true ? () => deducedType : undefined;
}

function listShape(compilation: Compilation, schema: JsonObject): ListShape {
  const item = lazyType(compilation, memberOf(schema, "items"));
  switch (schema["x-kubernetes-list-type"]) {
    case "map":
      return { isAtomic: false, keys: textsOf(schema["x-kubernetes-list-map-keys"]), item };
    case "set":
      return { isAtomic: false, keys: [], item };
    case "atomic":
      return { isAtomic: true, keys: [], item };
    default:
      return patchListShape(schema, item);
  }
}

// Some older types have only the extensions for strategic merge patches.
function patchListShape(schema: JsonObject, item: LazyType): ListShape {
  const strategy = schema["x-kubernetes-patch-strategy"];
  const key = schema["x-kubernetes-patch-merge-key"];
  const merges = typeof strategy === "string" && strategy.split(",").includes("merge");
  return { isAtomic: !merges, keys: merges && typeof key === "string" ? [key] : [], item };
}

function mapRelationship(schema: JsonObject): "atomic" | "granular" | undefined {
  const relationship = schema["x-kubernetes-map-type"];
  return relationship === "atomic" || relationship === "granular" ? relationship : undefined;
}

function textsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
