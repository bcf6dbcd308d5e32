import {
  checkMetadata,
  checkValue,
  fillDefaults,
  findScaleProblems,
  isJsonObject,
  subdomainProblems,
  type Definitions,
  type JsonObject,
  type ScalePaths,
  type SchemaProblem,
} from "@gen-operator/schema";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition, Schema, Unstored } from "../base/resource-definition.js";

export type { SchemaProblem } from "@gen-operator/schema";

/** What is known of a value besides what it says. */
export interface ParseOptions {
  /** The namespace of an object of a namespaced kind that names none. */
  readonly namespace?: string;
}

/** What is known of a value, and how the rules of its schema are checked. */
export interface CheckedParseOptions extends ParseOptions {
  /** Checks the rules of the schema, unless the object is wrong anyway. Default: they are not checked. */
  readonly checkRules?: (
    object: Record<string, unknown>,
    schema: Schema,
    definitions: Definitions,
  ) => readonly SchemaProblem[];
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
 * Checks a value of unknown origin against the schema of the kind and returns it as the API server stores it: typed, and of a custom kind
 * with the defaults of the schema. The value itself is not changed; what needs no default is shared with it.
 *
 * Checks types, required and unknown fields, the metadata, what the subresource scale shows, enums, ranges, lengths, formats, patterns (as RE2), repeated items, embedded resources and
 * anyOf, oneOf, allOf and not. The rules of a schema (`x-kubernetes-validations`) are checked by the function of the same name of
 * `@gen-operator/runtime/cel`. Throws a SchemaError that names every path.
 */
export function parseResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
  { checkRules, ...options }: CheckedParseOptions = {},
): Unstored<Resource> {
  if (!isJsonObject(value)) throw new SchemaError(definition.kind, [{ path: "<root>", message: "must be an object" }]);
  const { definitions = {}, ...schema } = definition.schema;
  const problems: SchemaProblem[] = [];
  for (const name of ["apiVersion", "kind"] as const)
    if (value[name] !== definition[name])
      problems.push({ path: name, message: `must be "${definition[name]}", is ${describe(value[name])}` });
  const filled = definition.isCustom ? fillDefaults(value, schema, definitions) : value;
  const { metadata, ...rest } = filled as Record<string, unknown>;
  const placed = placedMetadata(metadata, { ...options, scope: definition.scope }, problems);
  if (isJsonObject(metadata)) {
    checkMetadata(metadata, { path: "metadata", problems });
    if (definition.isCustom && isText(metadata["name"]))
      for (const message of subdomainProblems(metadata["name"])) problems.push({ path: "metadata.name", message });
  }
  const { apiVersion, kind } = definition;
  const object = { ...rest, apiVersion, kind, ...(isJsonObject(metadata) ? { metadata } : {}) };
  checkValue(object, withIdentity(schema), { path: "", definitions, problems });
  if (definition.scale !== undefined) checkScale(filled as JsonObject, definition.scale, problems);
  if (problems.length === 0 && checkRules !== undefined)
    problems.push(...checkRules(filled as Record<string, unknown>, schema, definitions));
  if (problems.length > 0) throw new SchemaError(definition.kind, problems);
  const isSame = filled === value && placed === metadata;
  return (isSame ? value : { ...(filled as object), metadata: placed }) as unknown as Unstored<Resource>;
}

// What the schema refuses is said already.
function checkScale(object: JsonObject, scale: ScalePaths, problems: SchemaProblem[]): void {
  for (const { path: from, value, expected } of findScaleProblems(object, scale)) {
    const path = from.slice(1);
    if (problems.some((problem) => problem.path === path)) continue;
    problems.push({ path, message: `must be ${expected}, as the subresource scale shows it, is ${describe(value)}` });
  }
}

const TEXT: Schema = { type: "string" };

// An object has its type and metadata, of which the schema says nothing or what only some values meet.
function withIdentity(schema: Schema): Schema {
  const { metadata, ...properties } = schema.properties ?? {};
  const open: Schema = { ...metadata, type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    ...schema,
    properties: { apiVersion: TEXT, kind: TEXT, ...properties, metadata: open },
    required: (schema.required ?? []).filter((name) => name !== "metadata"),
  };
}

// The types promise a name, and of a namespaced kind a namespace.
function placedMetadata(
  metadata: unknown,
  { scope, namespace }: ParseOptions & Pick<ResourceDefinition, "scope">,
  problems: SchemaProblem[],
): unknown {
  if (!isJsonObject(metadata)) {
    problems.push({ path: "metadata", message: "must be an object" });
    return metadata;
  }
  const fail = (name: string, message: string) => void problems.push({ path: `metadata.${name}`, message });
  if (!isText(metadata["name"])) fail("name", "must be a text that is not empty");
  const own = metadata["namespace"] ?? undefined;
  if (scope === "Cluster" && own !== undefined) fail("namespace", "must be absent, as the kind is cluster-scoped");
  if (scope === "Cluster" || isText(own)) return metadata;
  if (own === undefined && namespace !== undefined) return { ...metadata, namespace };
  const isAbsent = own === undefined;
  fail("namespace", isAbsent ? "is required; state one here or in the options" : "must be a text that is not empty");
  return metadata;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function describe(value: unknown): string {
  return typeof value === "object" && value !== null ? "another value" : String(JSON.stringify(value));
}
