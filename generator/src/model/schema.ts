import type { RawSchema, ResourceModel } from "./project-model.js";
import type { ResolvedDependent } from "./resolved-project.js";

/** Path of a field through objects, without items of lists and values of maps. */
export type FieldPath = readonly string[];

/** Fields that every object has, and that every cache includes. */
export const IDENTITY_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** The field at a path of a kind, or where the path leaves the schema. */
export type FieldAt =
  | {
      readonly kind: "object" | "list" | "map" | "scalar" | "any";
      /** Absent for apiVersion, kind, and metadata. */
      readonly schema?: RawSchema;
    }
  | {
      readonly kind: "unknown";
      /** `whole`: the parent is a list, a map, or a scalar, and so has no fields. */
      readonly reason: "name" | "whole";
      /** Number of steps of the path that exist. */
      readonly depth: number;
      /** Names of the fields that exist instead. */
      readonly known: readonly string[];
    };

/** Looks up a field in the schema of a kind. An untyped kind may have any field. */
export function fieldAt({ schema, definitions, isUntyped }: ResourceModel, path: FieldPath): FieldAt {
  let current = resolveRef(schema, definitions).schema;
  for (const [depth, name] of path.entries()) {
    if (depth === 0 && IDENTITY_FIELDS.has(name)) return { kind: name === "metadata" ? "object" : "scalar" };
    if (isUntyped === true) return { kind: "any" };
    const kind = kindOf(current);
    if (depth > 0 && kind !== "object") return { kind: "unknown", reason: "whole", depth, known: [] };
    const properties = schemasOf(current, "properties");
    const next = properties.get(name);
    if (next === undefined) {
      const known = [...properties.keys()].filter((other) => depth > 0 || !IDENTITY_FIELDS.has(other));
      return { kind: "unknown", reason: "name", depth, known };
    }
    current = resolveRef(next, definitions).schema;
  }
  return { kind: kindOf(current), schema: current };
}

/** Returns whether a field may be absent in a live object, according to `required`, `default`, and `nullable` along its path. */
export function mayBeAbsent({ schema, definitions, scope }: ResourceModel, path: FieldPath): boolean {
  const [first, second] = path;
  if (first === "metadata" && path.length === 2)
    return !["name", "uid", ...(scope === "Namespaced" ? ["namespace"] : [])].includes(second ?? "");
  let current = resolveRef(schema, definitions).schema;
  for (const [depth, name] of path.entries()) {
    const { required } = current;
    const next = schemasOf(current, "properties").get(name);
    if (next === undefined) return false;
    const isRequired = Array.isArray(required) && required.includes(name);
    const stated = resolveRef(next, definitions).schema;
    if (stated["nullable"] === true) return true;
    const isThere = isRequired || stated["default"] !== undefined || (depth === 0 && IDENTITY_FIELDS.has(name));
    if (!isThere) return true;
    current = stated;
  }
  return false;
}

function kindOf(schema: RawSchema): "object" | "list" | "map" | "scalar" | "any" {
  if (isIntOrString(schema)) return "scalar";
  if (schemasOf(schema, "properties").size > 0)
    return schema["x-kubernetes-preserve-unknown-fields"] === true ? "any" : "object";
  if (schema["type"] === "array") return "list";
  if (ownSchema(schema, "additionalProperties") !== undefined || schema["type"] === "object") return "map";
  return schema["type"] === undefined ? "any" : "scalar";
}

/** The field that stores the ids or the state of an external dependent. */
interface StateField {
  readonly resource: ResourceModel;
  /** Path from the root of the object. */
  readonly path: readonly string[];
  readonly field: FieldAt;
  /** True if it stores the state of all items, by key. */
  readonly isMap: boolean;
  /** What the field can store of a resource: an id, or an object with the id in `id`; undefined for neither. */
  readonly keeps: "id" | "object" | undefined;
}

/**
 * Looks up the field of the primary's status, or of another kind, in which a dependent stores its state; undefined if it uses none or the kind is
 * unknown.
 */
export function stateFieldOf(
  { spec, stateResource }: ResolvedDependent,
  primary: ResourceModel | undefined,
): StateField | undefined {
  const { status, path, perItem } = spec.external?.state ?? {};
  const resource = status === undefined ? stateResource : primary;
  const text = status === undefined ? path : `status.${status}`;
  if (resource === undefined || text === undefined) return undefined;
  const names = text.split(".");
  const field = fieldAt(resource, names);
  const isMap = spec.bulk !== undefined && perItem !== true;
  return { resource, path: names, field, isMap, keeps: isMap ? keptInMap(field, resource) : keptIn(field) };
}

function keptIn(field: FieldAt): StateField["keeps"] {
  if (field.kind === "any") return "id";
  if (field.kind === "scalar") return field.schema?.["type"] === "string" ? "id" : undefined;
  return field.kind === "object" && hasId(field.schema) ? "object" : undefined;
}

function keptInMap(field: FieldAt, { definitions }: ResourceModel): StateField["keeps"] {
  if (field.kind === "any") return "id";
  if (field.kind !== "map" || field.schema === undefined) return undefined;
  const isOpen = (schema: RawSchema) => schema["x-kubernetes-preserve-unknown-fields"] === true;
  const stated = ownSchema(field.schema, "additionalProperties");
  if (stated === undefined) return isOpen(field.schema) ? "id" : undefined;
  const values = resolveRef(stated, definitions).schema;
  if (hasId(values)) return "object";
  return values["type"] === "string" || isOpen(values) ? "id" : undefined;
}

function hasId(schema: RawSchema | undefined): boolean {
  return schema !== undefined && schemasOf(schema, "properties").get("id")?.["type"] === "string";
}

/** Returns whether a value is a JSON object. */
export function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the schemas of properties by name. Names are arbitrary, including `__proto__`. */
export function schemasOf(schema: RawSchema, keyword: "properties"): ReadonlyMap<string, RawSchema> {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  if (!isRecord(value)) return new Map();
  return new Map(Object.entries(value).map(([name, child]) => [name, isRecord(child) ? child : {}]));
}

/** Returns whether a schema declares fields. */
export function hasFields(schema: RawSchema): boolean {
  const value = Object.hasOwn(schema, "properties") ? schema["properties"] : undefined;
  return isRecord(value) && Object.keys(value).length > 0;
}

/** Returns whether the API server prunes undeclared fields of an object. */
export function dropsFields(schema: RawSchema): boolean {
  const isKept =
    schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-embedded-resource"] === true;
  return schema["type"] === "object" && !isKept && schema["additionalProperties"] === undefined;
}

/** Returns the schema of a keyword; undefined if there is none, or if its value is not an object. */
export function ownSchema(schema: RawSchema, keyword: "items" | "additionalProperties"): RawSchema | undefined {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  return isRecord(value) ? value : undefined;
}

/** Returns the schema of the items of a list. If the list preserves unknown fields, so do its items. */
export function itemsOf(schema: RawSchema): RawSchema | undefined {
  const items = ownSchema(schema, "items");
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  return isOpen && items !== undefined ? { ...items, "x-kubernetes-preserve-unknown-fields": true } : items;
}

/**
 * Recognizes an int-or-string field in every notation: the extension, with or without `anyOf` or `allOf`, and the formats int-or-string and quantity.
 */
export function isIntOrString(schema: RawSchema): boolean {
  return (
    schema["x-kubernetes-int-or-string"] === true ||
    schema["format"] === "int-or-string" ||
    (schema["format"] === "quantity" && schema["type"] === undefined)
  );
}

const CONDITION_FIELDS = ["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"];
const STATUSES = ["False", "True", "Unknown"];
const CONDITION_REQUIRED = ["lastTransitionTime", "message", "reason", "status", "type"];
/** Recognizes `metav1.Condition`: exactly its fields, with all but `observedGeneration` required, and the enum of statuses. */
export function isStatusCondition(schema: RawSchema): boolean {
  // Fast path: hardly any other type has this field.
  if (!isRecord(schema["properties"]) || !Object.hasOwn(schema["properties"], "lastTransitionTime")) return false;
  const properties = schemasOf(schema, "properties");
  if (!isSame([...properties.keys()], CONDITION_FIELDS)) return false;
  if (!Array.isArray(schema["required"]) || !isSame(schema["required"] as string[], CONDITION_REQUIRED)) return false;
  const statuses = properties.get("status")?.["enum"];
  if (!Array.isArray(statuses) || !isSame(statuses as string[], STATUSES)) return false;
  return ["lastTransitionTime", "message", "reason", "type"].every((name) => {
    const field = properties.get(name);
    return field?.["type"] === "string" && field["enum"] === undefined;
  });
}

/** Returns whether a schema accepts the conditions that the runtime writes: it declares every field of `metav1.Condition`, and requires no other. */
export function takesStatusCondition(schema: RawSchema): boolean {
  const properties = schemasOf(schema, "properties");
  const required = Array.isArray(schema["required"]) ? (schema["required"] as string[]) : [];
  if (!required.every((name) => CONDITION_FIELDS.includes(name))) return false;
  return CONDITION_FIELDS.every((name) => {
    const field = properties.get(name);
    if (field?.["type"] !== (name === "observedGeneration" ? "integer" : "string")) return false;
    const values = field["enum"];
    return (
      values === undefined ||
      (name === "status" && Array.isArray(values) && STATUSES.every((each) => values.includes(each)))
    );
  });
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return [...left].sort().join() === right.join();
}

const PREFIX = "#/components/schemas/";
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** A schema with its reference resolved. `definition` is the full name of the referenced definition. */
interface ResolvedSchema {
  readonly schema: RawSchema;
  readonly definition?: string;
}

/**
 * Resolves the reference of a schema to a built-in definition.
 *
 * OpenAPI 3.0 allows no siblings of `$ref`, so Kubernetes wraps it: `{ default: {}, allOf: [{ $ref }] }`. Keywords next to the reference take
 * precedence.
 */
export function resolveRef(raw: RawSchema, definitions: ReadonlyMap<string, RawSchema>): ResolvedSchema {
  const definition = definitionOf(raw);
  if (definition === undefined) return { schema: raw };
  if (definition === QUANTITY) return { schema: { format: "quantity" }, definition };
  if (definition === INT_OR_STRING) return { schema: { "x-kubernetes-int-or-string": true }, definition };
  const target = definitions.get(definition);
  if (target === undefined) return { schema: {}, definition };
  const { $ref: _ref, allOf: _allOf, ...beside } = raw;
  return { schema: { ...target, ...beside }, definition };
}

/** Returns the full name of the definition that a schema references. */
function definitionOf(raw: RawSchema): string | undefined {
  const allOf = raw["allOf"];
  const only: unknown = Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : undefined;
  const ref = raw["$ref"] ?? (isRecord(only) ? only["$ref"] : undefined);
  return typeof ref === "string" && ref.startsWith(PREFIX) ? ref.slice(PREFIX.length) : undefined;
}

/** Returns whether a definition is ObjectMeta. */
export function isObjectMetaRef(definition: string): boolean {
  return definition === OBJECT_META;
}

/** Returns the last part of the full name of a definition: `PodSpec` for `io.k8s.api.core.v1.PodSpec`. */
export function shortNameOf(definition: string): string {
  return definition.slice(definition.lastIndexOf(".") + 1);
}

/**
 * Returns the default that the API server applies.
 *
 * The OpenAPI of built-in kinds also lists zero values of Go as defaults, which the API server never sets.
 */
export function realDefaultOf(schema: RawSchema, isCustom: boolean): unknown {
  const value = schema["default"];
  if (isCustom) return value;
  const isZero = value === "" || value === 0 || value === false || (isRecord(value) && Object.keys(value).length === 0);
  return isZero ? undefined : value;
}
