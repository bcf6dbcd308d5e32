import type { JsonValue, KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition, Schema } from "../base/resource-definition.js";

/** What is wrong with a value, and where: `path` is in Kubernetes' notation, such as `spec.ports[0].name`. */
export interface SchemaProblem {
  readonly path: string;
  readonly message: string;
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
): Resource {
  const problems: SchemaProblem[] = [];
  if (!isRecord(value)) throw new SchemaError(definition.kind, [{ path: "<root>", message: "must be an object" }]);
  const expect = (name: "apiVersion" | "kind") => {
    if (value[name] === definition[name]) return;
    problems.push({ path: name, message: `must be "${definition[name]}", is ${JSON.stringify(value[name])}` });
  };
  expect("apiVersion");
  expect("kind");
  if (!isRecord(value["metadata"])) problems.push({ path: "metadata", message: "must be an object" });
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = value;
  const { definitions = {}, ...root } = definition.schema;
  const { apiVersion: _1, kind: _2, metadata: _3, ...properties } = root.properties ?? {};
  const required = (root.required ?? []).filter((name) => Object.hasOwn(properties, name));
  checkValue(rest, { ...root, properties, required }, { path: "", check: { definitions, problems } });
  if (problems.length > 0) throw new SchemaError(definition.kind, problems);
  return value as unknown as Resource;
}

interface Place {
  readonly path: string;
  readonly check: Check;
}

interface Check {
  readonly definitions: { readonly [name: string]: Schema };
  readonly problems: SchemaProblem[];
}

function checkValue(value: unknown, schema: Schema, place: Place): void {
  const { path, check } = place;
  if (schema.$ref !== undefined) {
    const target = check.definitions[schema.$ref];
    if (target !== undefined) checkValue(value, target, place);
    return;
  }
  if (value === undefined) return;
  const fail = (message: string) => check.problems.push({ path: path === "" ? "<root>" : path, message });
  if (value === null) {
    if (schema.nullable !== true && schema.type !== undefined) fail(`must be ${schema.type}, is null`);
    return;
  }
  if (schema["x-kubernetes-int-or-string"] === true || schema.format === "quantity") {
    if (typeof value !== "string" && typeof value !== "number")
      fail(`must be a number or a string, is ${kindOf(value)}`);
    return;
  }
  if (schema.type !== undefined && !hasType(value, schema.type)) {
    fail(`must be ${schema.type}, is ${kindOf(value)}`);
    return;
  }
  if (schema.enum !== undefined && !schema.enum.some((option) => option === value))
    fail(
      `must be one of ${schema.enum.map((option) => JSON.stringify(option)).join(", ")}, is ${JSON.stringify(value)}`,
    );
  if (typeof value === "number") checkNumber(value, schema, fail);
  if (typeof value === "string") checkText(value, schema, fail);
  if (Array.isArray(value)) checkList(value, schema, { ...place, fail });
  else if (isRecord(value)) checkObject(value, schema, { ...place, fail });
}

function checkNumber(value: number, schema: Schema, fail: (message: string) => void): void {
  const { minimum, maximum, multipleOf } = schema;
  if (minimum !== undefined && (value < minimum || (schema.exclusiveMinimum === true && value === minimum)))
    fail(`must be ${schema.exclusiveMinimum === true ? "greater than" : "at least"} ${minimum}, is ${value}`);
  if (maximum !== undefined && (value > maximum || (schema.exclusiveMaximum === true && value === maximum)))
    fail(`must be ${schema.exclusiveMaximum === true ? "less than" : "at most"} ${maximum}, is ${value}`);
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf))
    fail(`must be a multiple of ${multipleOf}, is ${value}`);
}

function checkText(value: string, schema: Schema, fail: (message: string) => void): void {
  const { minLength, maxLength, pattern } = schema;
  // The API server counts code points.
  const length = minLength === undefined && maxLength === undefined ? 0 : [...value].length;
  if (minLength !== undefined && length < minLength) fail(`must have at least ${minLength} characters, has ${length}`);
  if (maxLength !== undefined && length > maxLength) fail(`must have at most ${maxLength} characters, has ${length}`);
  if (pattern !== undefined && regExpOf(pattern)?.test(value) === false) fail(`must match ${pattern}`);
}

const regExps = new Map<string, RegExp | undefined>();

// Patterns are RE2; the few that JavaScript does not have are left to the API server.
function regExpOf(pattern: string): RegExp | undefined {
  if (!regExps.has(pattern)) {
    try {
      regExps.set(pattern, new RegExp(pattern));
    } catch {
      regExps.set(pattern, undefined);
    }
  }
  return regExps.get(pattern);
}

type FailingPlace = Place & { fail: (message: string) => void };

function checkList(value: unknown[], schema: Schema, { path, check, fail }: FailingPlace): void {
  const { minItems, maxItems, items } = schema;
  if (minItems !== undefined && value.length < minItems)
    fail(`must have at least ${minItems} items, has ${value.length}`);
  if (maxItems !== undefined && value.length > maxItems)
    fail(`must have at most ${maxItems} items, has ${value.length}`);
  if (items !== undefined)
    value.forEach((item, index) => checkValue(item, items, { path: `${path}[${index}]`, check }));
}

function checkObject(value: Record<string, unknown>, schema: Schema, { path, check, fail }: FailingPlace): void {
  const { properties = {}, additionalProperties, minProperties, maxProperties } = schema;
  const names = Object.keys(value);
  if (minProperties !== undefined && names.length < minProperties)
    fail(`must have at least ${minProperties} fields, has ${names.length}`);
  if (maxProperties !== undefined && names.length > maxProperties)
    fail(`must have at most ${maxProperties} fields, has ${names.length}`);
  for (const name of schema.required ?? [])
    if (value[name] === undefined && !hasDefault(properties[name]))
      check.problems.push({ path: join(path, name), message: "is required" });
  const implied = schema["x-kubernetes-embedded-resource"] === true ? ["apiVersion", "kind", "metadata"] : [];
  const isOpen =
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    (schema.properties === undefined && additionalProperties === undefined && path !== "");
  for (const name of names) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property !== undefined) checkValue(value[name], property, { path: join(path, name), check });
    else if (typeof additionalProperties === "object")
      checkValue(value[name], additionalProperties, { path: join(path, name), check });
    else if (additionalProperties !== true && !isOpen && !implied.includes(name))
      check.problems.push({ path: join(path, name), message: "is not a field of the schema" });
  }
}

function hasDefault(schema: Schema | undefined): boolean {
  return schema?.default !== undefined;
}

function join(path: string, name: string): string {
  if (path === "") return name;
  return /^[\w-]+$/.test(name) ? `${path}.${name}` : `${path}[${name}]`;
}

function hasType(value: unknown, type: NonNullable<Schema["type"]>): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isRecord(value);
  return typeof value === type;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isRecord(value: unknown): value is Record<string, JsonValue> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
