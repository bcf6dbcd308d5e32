import { resolveRef } from "../definitions.js";
import type { RawSchema, ResourceModel } from "../project-model.js";
import { isIntOrString, ownSchema, schemasOf } from "./raw-schema.js";
import type { ResolvedDependent } from "../build/resolved-project.js";

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
export interface StateField {
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
