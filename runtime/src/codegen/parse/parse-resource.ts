import type { JsonValue, KubernetesObject } from "../../base/kubernetes-object.js";
import type { ResourceDefinition, Schema } from "../../base/resource-definition.js";

/** What is wrong with a value, and where: `path` is in Kubernetes' notation, such as `spec.ports[0].name`. */
export interface SchemaProblem {
  readonly path: string;
  readonly message: string;
}

/** What is known of a value besides what it says. */
export interface ParseOptions {
  /** The namespace of an object of a namespaced kind that names none. */
  readonly namespace?: string;
}

/** Thrown when a value is not what the schema of its kind says; `problems` has all of them. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly problems: readonly SchemaProblem[];

  constructor(kind: string, problems: readonly SchemaProblem[]) {
    super(`not a valid ${kind}: ${problems.map(({ path, message }) => `${path}: ${message}`).join("; ")}`);
    this.problems = problems;
  }
}

/**
 * Checks a value of unknown origin against the schema of the kind and returns it typed.
 *
 * Checks types, required and unknown fields, enums, ranges, lengths and patterns. Required fields that have a default may be absent,
 * as in what a user writes. Throws a SchemaError that names every path.
 */
export function parseResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
  _options: ParseOptions = {},
): Resource {
  const problems: SchemaProblem[] = [];
  if (!isRecord(value)) throw new SchemaError(definition.kind, [{ path: "<root>", message: "must be an object" }]);
  for (const name of ["apiVersion", "kind"] as const)
    if (value[name] !== definition[name])
      problems.push({ path: name, message: `must be "${definition[name]}", is ${JSON.stringify(value[name])}` });
  if (!isRecord(value["metadata"])) problems.push({ path: "metadata", message: "must be an object" });
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = value;
  const { definitions = {}, ...root } = definition.schema;
  const { apiVersion: _1, kind: _2, metadata: _3, ...properties } = root.properties ?? {};
  const required = (root.required ?? []).filter((name) => Object.hasOwn(properties, name));
  checkValue(rest, { ...root, properties, required }, { path: "", definitions, problems });
  if (problems.length > 0) throw new SchemaError(definition.kind, problems);
  return value as unknown as Resource;
}

/** Where a value stands, and what is checked there. */
interface Place {
  readonly path: string;
  readonly definitions: { readonly [name: string]: Schema };
  readonly problems: SchemaProblem[];
}

type Fail = (message: string) => void;

function checkValue(value: unknown, schema: Schema, place: Place): void {
  const { path, definitions, problems } = place;
  if (schema.$ref !== undefined) {
    const target = definitions[schema.$ref];
    if (target !== undefined) checkValue(value, target, place);
    return;
  }
  if (value === undefined) return;
  const fail: Fail = (message) => problems.push({ path: path === "" ? "<root>" : path, message });
  if (value === null) {
    if (schema.nullable !== true && schema.type !== undefined) fail(`must be ${schema.type}, is null`);
    return;
  }
  if (schema["x-kubernetes-int-or-string"] === true || schema.format === "quantity") {
    if (typeof value !== "string" && typeof value !== "number")
      fail(`must be a number or a string, is ${kindOf(value)}`);
    return;
  }
  const isOfType = schema.type === "integer" ? Number.isInteger(value) : kindOf(value) === schema.type;
  if (schema.type !== undefined && !isOfType) {
    fail(`must be ${schema.type}, is ${kindOf(value)}`);
    return;
  }
  if (schema.enum !== undefined && !schema.enum.some((option) => option === value))
    fail(
      `must be one of ${schema.enum.map((option) => JSON.stringify(option)).join(", ")}, is ${JSON.stringify(value)}`,
    );
  if (typeof value === "number") checkNumber(value, schema, fail);
  if (typeof value === "string") checkText(value, schema, fail);
  if (Array.isArray(value)) {
    checkCount(value.length, [schema.minItems, schema.maxItems, "items"], fail);
    const { items } = schema;
    if (items !== undefined)
      value.forEach((item, index) => checkValue(item, items, { ...place, path: `${path}[${index}]` }));
  } else if (isRecord(value)) {
    checkCount(Object.keys(value).length, [schema.minProperties, schema.maxProperties, "fields"], fail);
    checkObject(value, schema, place);
  }
}

function checkNumber(value: number, schema: Schema, fail: Fail): void {
  const { minimum, maximum, multipleOf } = schema;
  if (minimum !== undefined && (value < minimum || (schema.exclusiveMinimum === true && value === minimum)))
    fail(`must be ${schema.exclusiveMinimum === true ? "greater than" : "at least"} ${minimum}, is ${value}`);
  if (maximum !== undefined && (value > maximum || (schema.exclusiveMaximum === true && value === maximum)))
    fail(`must be ${schema.exclusiveMaximum === true ? "less than" : "at most"} ${maximum}, is ${value}`);
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf))
    fail(`must be a multiple of ${multipleOf}, is ${value}`);
}

function checkText(value: string, schema: Schema, fail: Fail): void {
  const { minLength, maxLength, pattern } = schema;
  // The API server counts code points.
  const length = minLength === undefined && maxLength === undefined ? 0 : [...value].length;
  checkCount(length, [minLength, maxLength, "characters"], fail);
  if (pattern !== undefined && !hasPattern(value, pattern)) fail(`must match ${pattern}`);
}

type Limits = readonly [min: number | undefined, max: number | undefined, what: string];

function checkCount(count: number, [min, max, what]: Limits, fail: Fail): void {
  if (min !== undefined && count < min) fail(`must have at least ${min} ${what}, has ${count}`);
  if (max !== undefined && count > max) fail(`must have at most ${max} ${what}, has ${count}`);
}

// Patterns are RE2; the few that JavaScript does not have are left to the API server.
function hasPattern(value: string, pattern: string): boolean {
  try {
    return new RegExp(pattern).test(value);
  } catch {
    return true;
  }
}

function checkObject(value: Record<string, unknown>, schema: Schema, place: Place): void {
  const { properties = {}, additionalProperties } = schema;
  const { path, problems } = place;
  for (const name of schema.required ?? [])
    if (value[name] === undefined && properties[name]?.default === undefined)
      problems.push({ path: join(path, name), message: "is required" });
  const implied = schema["x-kubernetes-embedded-resource"] === true ? ["apiVersion", "kind", "metadata"] : [];
  const isOpen =
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    (schema.properties === undefined && additionalProperties === undefined && path !== "");
  for (const name of Object.keys(value)) {
    const at = join(path, name);
    const property = Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
    if (typeof property === "object") checkValue(value[name], property, { ...place, path: at });
    else if (property !== true && !isOpen && !implied.includes(name))
      problems.push({ path: at, message: "is not a field of the schema" });
  }
}

function join(path: string, name: string): string {
  if (path === "") return name;
  return /^[\w-]+$/.test(name) ? `${path}.${name}` : `${path}[${name}]`;
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? "array" : typeof value;
}

function isRecord(value: unknown): value is Record<string, JsonValue> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
