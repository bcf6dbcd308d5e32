import {
  type Definitions,
  type JsonObject,
  type ScalePaths,
  type SchemaProblem,
  checkMetadata,
  checkValue,
  fillDefaults,
  findScaleProblems,
  generateName,
  isJsonObject,
  subdomainProblems,
} from "@gen-operator/schema";
import type {
  KubernetesObject,
  NewResource,
  ObjectMeta,
  ResourceClass,
  ResourceDefinition,
  Schema,
  StoredMeta,
  Unstored,
} from "../base/kubernetes-object.js";

/** The facts of a kind in generated code. */
export type ResourceFacts = Pick<
  ResourceDefinition,
  "group" | "version" | "kind" | "plural" | "scope" | "hasStatusSubresource" | "scale" | "isCustom" | "schema"
>;

/** Defines a kind from its facts. */
export function defineResource<Resource extends KubernetesObject>(facts: ResourceFacts): ResourceDefinition<Resource> {
  const apiVersion = facts.group === "" ? facts.version : `${facts.group}/${facts.version}`;
  return Object.freeze({ ...facts, apiVersion });
}

/**
 * Builds an object: adds the apiVersion, the kind and, for a custom kind, the defaults of its schema to `init`, as the API server will store it.
 *
 * A name that is to start with `generateName` is completed here, as the API server does. So the object has a name that can be referred to
 * before it exists, and creating it twice by mistake fails.
 */
export function createResource<Resource extends KubernetesObject>(
  { apiVersion, kind, isCustom, schema }: ResourceDefinition<Resource>,
  init: { readonly metadata?: { readonly name?: string | undefined; readonly generateName?: string | undefined } },
): Unstored<Resource> {
  const given = { apiVersion, kind, ...init };
  const { definitions = {} } = schema;
  const object = (isCustom ? fillDefaults(given, schema, definitions) : given) as unknown as Unstored<Resource>;
  const { name, generateName: base } = init.metadata ?? {};
  if (name !== undefined || base === undefined) return object;
  return Object.assign({}, object, { metadata: { ...init.metadata, name: generateName(base) } });
}

/**
 * Returns an object as it is read after the API server has stored it: with its defaults, `uid`, `resourceVersion`, `creationTimestamp` and, of a
 * custom kind, `generation`, unless it has them. For unit tests of functions that are called with what was read.
 *
 * @example
 * const primary = asStored(WebPage, { metadata: { name: "home", namespace: "default" }, spec: { html: "<h1>Hello</h1>" } });
 */
export function asStored<Resource extends KubernetesObject, Input>(
  { definition }: ResourceClass<Resource, Input>,
  object: NewResource<Input, Resource> | Unstored<Resource>,
): Resource {
  const created: KubernetesObject = createResource(definition as ResourceDefinition, object);
  const { metadata } = created;
  const stored: ObjectMeta & StoredMeta = {
    ...metadata,
    uid: metadata.uid ?? crypto.randomUUID(),
    resourceVersion: metadata.resourceVersion ?? "1",
    creationTimestamp: metadata.creationTimestamp ?? `${new Date().toISOString().slice(0, 19)}Z`,
    ...(definition.isCustom ? { generation: metadata.generation ?? 1 } : {}),
  };
  return { ...created, metadata: stored } as unknown as Resource;
}

/** Tells whether a value is an object of the kind, by apiVersion and kind alone. */
export function isResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
): value is Resource {
  if (typeof value !== "object" || value === null) return false;
  const { apiVersion, kind } = value as Partial<KubernetesObject>;
  return apiVersion === definition.apiVersion && kind === definition.kind;
}

/** The facts of a kind without a generated class; `plural` is the name that `kubectl api-resources` shows. */
export interface UntypedFacts extends Pick<ResourceDefinition, "apiVersion" | "kind" | "plural" | "scope"> {
  /** Default: true */
  readonly hasStatusSubresource?: boolean;
}

/** An object of an untyped kind. */
export interface UntypedResource extends KubernetesObject {
  readonly [field: string]: unknown;
}

/** The result of `desired` for an untyped kind. */
export interface UntypedInput {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

// The groups with a dot that a kube-apiserver 1.36 serves by itself. Other groups end in k8s.io as well, and are custom: those of
// Gateway API, volume snapshots and metrics.
const BUILTIN_GROUPS: ReadonlySet<string> = new Set([
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "certificates.k8s.io",
  "coordination.k8s.io",
  "discovery.k8s.io",
  "events.k8s.io",
  "flowcontrol.apiserver.k8s.io",
  "networking.k8s.io",
  "node.k8s.io",
  "rbac.authorization.k8s.io",
  "resource.k8s.io",
  "scheduling.k8s.io",
  "storage.k8s.io",
]);

/** Describes a kind by its name alone (JOSDK's GenericKubernetesResource): its objects are whatever the server has. */
export function untypedResource(facts: UntypedFacts): ResourceClass<UntypedResource, UntypedInput> {
  const { apiVersion, kind, plural, scope, hasStatusSubresource = true } = facts;
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  // The API server rejects a CustomResourceDefinition whose group has no dot.
  const isCustom = group.includes(".") && !BUILTIN_GROUPS.has(group);
  const names = { group, version, kind, plural, scope };
  const definition = defineResource<UntypedResource>({ ...names, hasStatusSubresource, isCustom, schema: {} });
  return Object.freeze({
    definition,
    create: (init: NewResource<UntypedInput, UntypedResource>) => createResource(definition, init),
  });
}

export type { SchemaProblem } from "@gen-operator/schema";

/** Options of parseResource(). */
export interface ParseOptions {
  /** The namespace of an object of a namespaced kind without one. */
  readonly namespace?: string;
}

/** Options of parseResource() with a check of validation rules. */
export interface CheckedParseOptions extends ParseOptions {
  /** Checks the rules of the schema if the object is valid otherwise. Default: they are not checked. */
  readonly checkRules?: (
    object: Record<string, unknown>,
    schema: Schema,
    definitions: Definitions,
  ) => readonly SchemaProblem[];
}

/** Thrown for a value that does not fit the schema of its kind; `problems` has all problems. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly problems: readonly SchemaProblem[];

  constructor(kind: string, problems: readonly SchemaProblem[]) {
    super(`not a valid ${kind}: ${problems.map(({ path, message }) => `${path}: ${message}`).join("; ")}`);
    this.problems = problems;
  }
}

/**
 * Validates a value of unknown origin against the schema of the kind and returns it as the API server stores it: typed, and for a custom kind with
 * the defaults of the schema. The value itself is not changed; the result shares parts that need no default.
 *
 * Validates types, required and unknown fields, the metadata, the fields of the scale subresource, enums, ranges, lengths, formats, patterns (as RE2),
 * repeated items, embedded resources, anyOf, oneOf, allOf and not. To evaluate the rules of a schema (`x-kubernetes-validations`), use parseResource
 * of `@gen-operator/runtime/cel`. Throws a SchemaError that lists every path.
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
      problems.push({ path: name, message: `must be "${definition[name]}", is ${describeValue(value[name])}` });
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

// The schema reports these already.
function checkScale(object: JsonObject, scale: ScalePaths, problems: SchemaProblem[]): void {
  for (const { path: from, value, expected } of findScaleProblems(object, scale)) {
    const path = from.slice(1);
    if (problems.some((problem) => problem.path === path)) continue;
    problems.push({
      path,
      message: `must be ${expected}, as the subresource scale shows it, is ${describeValue(value)}`,
    });
  }
}

const TEXT: Schema = { type: "string" };

// Checks apiVersion, kind and metadata, which the schema does not cover.
function withIdentity(schema: Schema): Schema {
  const { metadata, ...properties } = schema.properties ?? {};
  const open: Schema = { ...metadata, type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    ...schema,
    properties: { apiVersion: TEXT, kind: TEXT, ...properties, metadata: open },
    required: (schema.required ?? []).filter((name) => name !== "metadata"),
  };
}

// The types guarantee a name, and a namespace for a namespaced kind.
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

function describeValue(value: unknown): string {
  return typeof value === "object" && value !== null ? "another value" : String(JSON.stringify(value));
}

/** The fields that every cache keeps. */
type IdentityField = "apiVersion" | "kind" | "metadata";

type HeadOf<Path extends string> = Path extends `${infer Head}.${string}` ? Head : Path;

type RestOf<Path extends string, Field extends string> = Path extends `${Field}.${infer Rest}` ? Rest : never;

declare const reduced: unique symbol;

/** The type of a field that a cache does not keep. `Hint` is part of the compiler's message. */
interface NotKept<Hint extends string> {
  readonly [reduced]: Hint;
}

type KeptValue<Value, Path extends string, Field extends string, Hint extends string> = Field extends Path
  ? Value
  : Value extends object
    ? KeptPart<Value, RestOf<Path, Field>, Hint>
    : Value;

type KeptFields<Resource, Path extends string, Hint extends string> = {
  [Field in keyof Resource as Field extends HeadOf<Path> ? Field : never]: KeptValue<
    Resource[Field],
    Path,
    Field & string,
    Hint
  >;
};

/** Has the kept fields alone, so no other field can be read. */
type Readable<Resource, Path extends string, Hint extends string> = KeptFields<Resource, Path, Hint> & {
  readonly [reduced]?: never;
};

/** Has the other fields with a useless type, so the object is not taken for a whole object. */
type Unreadable<Resource, Path extends string, Hint extends string> = KeptFields<Resource, Path, Hint> & {
  readonly [Field in keyof Resource as Field extends HeadOf<Path> ? never : Field]-?: NotKept<Hint>;
} & { readonly [reduced]: true };

type KeptPart<Resource, Path extends string, Hint extends string> =
  Readable<Resource, Path, Hint> | Unreadable<Resource, Path, Hint>;

/**
 * A resource in a cache that is reduced to paths such as `status.phase`: its identity, its metadata, and the values at the paths.
 *
 * Code that reads another field does not compile, nor does code that passes the object on as a whole one: a field of a union can be read
 * only if all members have it, and a union is assignable only if all members are. The message contains `Hint`. A whole object is assignable.
 */
export type Kept<Resource, Path extends string, Hint extends string> = KeptPart<Resource, Path | IdentityField, Hint>;
