import type { RawSchema, ResourceModel } from "./project-model.js";
import type { ResolvedDependent } from "./resolved-project.js";

/** The way to a field through objects: no items of lists, no values of maps. */
export type FieldPath = readonly string[];

/** What every object has and every form of a cache keeps. */
export const IDENTITY_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** What a field of a kind is, or where the path to it leaves the schema. */
export type FieldAt =
  | {
      readonly kind: "object" | "list" | "map" | "scalar" | "any";
      /** Absent for what every object has. */
      readonly schema?: RawSchema;
    }
  | {
      readonly kind: "unknown";
      /** `whole`: what is before has items or values, and not fields. */
      readonly reason: "name" | "whole";
      /** How much of the path the schema has. */
      readonly depth: number;
      /** The fields that are there instead. */
      readonly known: readonly string[];
    };

/** Looks a field up in the schema of a kind; one without a schema may have anything. */
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

/** Tells whether an object of a kind may lack a field, by `required`, `default` and `nullable` on the way to it. */
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

/** The field that keeps the ids of an external dependent, or more than those, as the schema of its kind has it. */
interface StateField {
  readonly resource: ResourceModel;
  /** From the root of the object. */
  readonly path: readonly string[];
  readonly field: FieldAt;
  /** Whether it has what is kept of all items, by their keys. */
  readonly isMap: boolean;
  /** What it can keep of a resource: an id, or an object that has it as `id`; undefined if neither. */
  readonly keeps: "id" | "object" | undefined;
}

/** Looks up the field of the primary's status, or of the user's kind, that a dependent names; undefined if it names none that is known. */
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

/** Tells whether a value is a JSON object. */
export function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the schemas below a keyword that maps names to schemas; the names may be anything, even `__proto__`. */
export function schemasOf(schema: RawSchema, keyword: "properties"): ReadonlyMap<string, RawSchema> {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  if (!isRecord(value)) return new Map();
  return new Map(Object.entries(value).map(([name, child]) => [name, isRecord(child) ? child : {}]));
}

/** Tells whether a schema names any fields. */
export function hasFields(schema: RawSchema): boolean {
  const value = Object.hasOwn(schema, "properties") ? schema["properties"] : undefined;
  return isRecord(value) && Object.keys(value).length > 0;
}

/** Tells whether the API server drops the fields of an object that its schema does not declare. */
export function dropsFields(schema: RawSchema): boolean {
  const isKept =
    schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-embedded-resource"] === true;
  return schema["type"] === "object" && !isKept && schema["additionalProperties"] === undefined;
}

/** Returns the schema below a keyword; undefined if there is none, or if it is a boolean or a list. */
export function ownSchema(schema: RawSchema, keyword: "items" | "additionalProperties"): RawSchema | undefined {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  return isRecord(value) ? value : undefined;
}

/** Returns the schema of the items of a list. The API server keeps unknown fields of the items of a list that preserves them. */
export function itemsOf(schema: RawSchema): RawSchema | undefined {
  const items = ownSchema(schema, "items");
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  return isOpen && items !== undefined ? { ...items, "x-kubernetes-preserve-unknown-fields": true } : items;
}

/** Recognises a number-or-text field in all four spellings: the flag alone, beside `anyOf` or `allOf`, and the format. */
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
/** Recognises `metav1.Condition`: exactly its fields, of which all but `observedGeneration` are required. */
export function isStatusCondition(schema: RawSchema): boolean {
  // What hardly any other type has.
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

/** Tells whether an object may be a condition as the runtime writes it: with every field of `metav1.Condition`, and no other. */
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

/** A schema whose reference, if it was one, is followed; `definition` is the full name of what it referred to. */
interface ResolvedSchema {
  readonly schema: RawSchema;
  readonly definition?: string;
}

/**
 * Follows the reference of a schema to a built-in definition.
 *
 * OpenAPI 3.0 allows nothing beside `$ref`, so Kubernetes wraps it: `{ default: {}, allOf: [{ $ref }] }`. What stands beside it wins.
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

/** Returns the full name of the definition that a schema refers to. */
function definitionOf(raw: RawSchema): string | undefined {
  const allOf = raw["allOf"];
  const only: unknown = Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : undefined;
  const ref = raw["$ref"] ?? (isRecord(only) ? only["$ref"] : undefined);
  return typeof ref === "string" && ref.startsWith(PREFIX) ? ref.slice(PREFIX.length) : undefined;
}

/** Tells whether a definition is the metadata of an object. */
export function isObjectMetaRef(definition: string): boolean {
  return definition === OBJECT_META;
}

/** Returns the last part of the full name of a definition: `PodSpec` of `io.k8s.api.core.v1.PodSpec`. */
export function shortNameOf(definition: string): string {
  return definition.slice(definition.lastIndexOf(".") + 1);
}

/**
 * Returns the default that the API server fills in.
 *
 * The OpenAPI of built-in kinds also states Go's zero values as defaults, which the server never writes.
 */
export function realDefaultOf(schema: RawSchema, isCustom: boolean): unknown {
  const value = schema["default"];
  if (isCustom) return value;
  const isZero = value === "" || value === 0 || value === false || (isRecord(value) && Object.keys(value).length === 0);
  return isZero ? undefined : value;
}
