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

/** The properties of a kind that generated code passes to defineResource(). */
export type ResourceFacts = Pick<
  ResourceDefinition,
  "group" | "version" | "kind" | "plural" | "scope" | "hasStatusSubresource" | "scale" | "isCustom" | "schema"
>;

/** Creates the definition of a kind. */
export function defineResource<Resource extends KubernetesObject>(facts: ResourceFacts): ResourceDefinition<Resource> {
  const apiVersion = facts.group === "" ? facts.version : `${facts.group}/${facts.version}`;
  return Object.freeze({ ...facts, apiVersion });
}

/**
 * Builds an object from `init`: adds apiVersion and kind and, for a custom kind, the defaults of its schema, as the API server would.
 *
 * A name for `generateName` is generated here, not by the API server. The object then has a name that others can refer to before it exists, and
 * creating it twice by mistake fails.
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
 * Returns an object as the API server would return it after storing it: with its defaults, `uid`, `resourceVersion`, `creationTimestamp` and, for a
 * custom kind, `generation`. Values that the object already has are kept. Use it in unit tests of functions that receive objects from the cluster.
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

/** Returns whether a value is an object of the kind. Compares only apiVersion and kind. */
export function isResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
): value is Resource {
  if (typeof value !== "object" || value === null) return false;
  const { apiVersion, kind } = value as Partial<KubernetesObject>;
  return apiVersion === definition.apiVersion && kind === definition.kind;
}

/** Describes a kind that has no generated class. `plural` is the resource name that `kubectl api-resources` prints. */
export interface UntypedFacts extends Pick<ResourceDefinition, "apiVersion" | "kind" | "plural" | "scope"> {
  /** Whether the kind has a status subresource. Default: true */
  readonly hasStatusSubresource?: boolean;
}

/** An object of a kind without a generated class. */
export interface UntypedResource extends KubernetesObject {
  readonly [field: string]: unknown;
}

/** The desired object of a kind without a generated class. */
export interface UntypedInput {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

// The API groups with a dot that kube-apiserver 1.36 serves. Other groups that end in k8s.io come from CRDs, such as those of the Gateway API and
// volume snapshots, or from the metrics server.
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

/** Defines a kind without a schema, like JOSDK's GenericKubernetesResource. Its objects are neither typed nor validated. */
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

/** Options of parseResource. */
export interface ParseOptions {
  /** The namespace of the result if the value has none and the kind is namespaced. */
  readonly namespace?: string;
}

/** Options of parseResource, with an evaluator of validation rules. */
export interface CheckedParseOptions extends ParseOptions {
  /** Evaluates the validation rules of the schema. Called only if the object is otherwise valid. Default: the rules are not evaluated. */
  readonly checkRules?: (
    object: Record<string, unknown>,
    schema: Schema,
    definitions: Definitions,
  ) => readonly SchemaProblem[];
}

/** Thrown if a value does not match the schema of its kind. `problems` lists every violation. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly problems: readonly SchemaProblem[];

  constructor(kind: string, problems: readonly SchemaProblem[]) {
    super(`not a valid ${kind}: ${problems.map(({ path, message }) => `${path}: ${message}`).join("; ")}`);
    this.problems = problems;
  }
}

/**
 * Validates a value of unknown origin against the schema of a kind. Returns it typed and as the API server would store it; for a custom kind, with
 * the defaults of the schema. Does not modify the value; the result shares the parts of it in which no default is set.
 *
 * Validates types, required and unknown fields, metadata, the fields of the scale subresource, enums, ranges, lengths, formats, patterns (as RE2),
 * duplicate items, embedded resources, anyOf, oneOf, allOf and not. Use `parseResource` of `@gen-operator/runtime/cel` to also evaluate validation
 * rules (`x-kubernetes-validations`). Throws a SchemaError with all violations.
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

// Skips paths for which the schema has already reported a problem.
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

// Adds apiVersion, kind and metadata, which the schema of a kind does not cover.
function withIdentity(schema: Schema): Schema {
  const { metadata, ...properties } = schema.properties ?? {};
  const open: Schema = { ...metadata, type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    ...schema,
    properties: { apiVersion: TEXT, kind: TEXT, ...properties, metadata: open },
    required: (schema.required ?? []).filter((name) => name !== "metadata"),
  };
}

// The types of generated classes guarantee a name and, for a namespaced kind, a namespace.
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

/** The fields that a reduced cache always keeps. */
type IdentityField = "apiVersion" | "kind" | "metadata";

type HeadOf<Path extends string> = Path extends `${infer Head}.${string}` ? Head : Path;

type RestOf<Path extends string, Field extends string> = Path extends `${Field}.${infer Rest}` ? Rest : never;

declare const reduced: unique symbol;

/** The type of a field that the cache does not keep. The compiler prints `Hint` in its message. */
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

/** Contains only the kept fields, so reading another field does not compile. */
type Readable<Resource, Path extends string, Hint extends string> = KeptFields<Resource, Path, Hint> & {
  readonly [reduced]?: never;
};

/** Gives all other fields an unusable type, so the object cannot be passed where a whole object is expected. */
type Unreadable<Resource, Path extends string, Hint extends string> = KeptFields<Resource, Path, Hint> & {
  readonly [Field in keyof Resource as Field extends HeadOf<Path> ? never : Field]-?: NotKept<Hint>;
} & { readonly [reduced]: true };

type KeptPart<Resource, Path extends string, Hint extends string> =
  Readable<Resource, Path, Hint> | Unreadable<Resource, Path, Hint>;

/**
 * A resource in a cache that keeps only some paths, such as `status.phase`: apiVersion, kind, metadata, and the values at these paths.
 *
 * Code that reads another field, or passes the object on as a whole object, does not compile: a field of a union can be read only if all members have
 * it, and a union is assignable only if all members are. The compiler's message contains `Hint`. A whole object is assignable to this type.
 */
export type Kept<Resource, Path extends string, Hint extends string> = KeptPart<Resource, Path | IdentityField, Hint>;
