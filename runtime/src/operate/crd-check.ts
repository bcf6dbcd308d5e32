import { isApiError } from "../base/errors.js";
import { type ResourceDefinition, type Schema, crdNameOf, kindNameOf } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import { Backoff, sleep } from "../base/wait.js";
import { type ApiClient, variantOf } from "../client/api-client.js";
import { type CrdVersion, customResourceDefinition } from "../client/custom-resource-definition.js";

const CRD_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/**
 * Compares the compiled schemas with the CustomResourceDefinitions of the cluster; throws a single error that lists all differences (JOSDK's
 * checkCRDAndValidateLocalModel). If the API server is unreachable or returns an error other than 403 or 404, retries until the signal is aborted.
 */
export async function checkCrds(
  client: ApiClient,
  definitions: Iterable<ResourceDefinition>,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const { server } = client.connection;
  // The client's own retries would log nothing for up to a minute.
  const asking = variantOf(client, { maxAttempts: 1 });
  const kinds = new Map([...definitions].map((each) => [kindNameOf(each), each]));
  const custom = [...kinds.values()].filter(({ isCustom }) => isCustom);
  const backoff = new Backoff(CRD_BACKOFF);
  for (;;) {
    try {
      const problems = (await Promise.all(custom.map((each) => problemsOf(asking, each, signal)))).flat();
      if (problems.length === 0) return;
      throw new UnfitError(`${server}: ${problems.join("; ")}`);
    } catch (error) {
      if (error instanceof UnfitError || signal.aborted) throw error;
      // Ignore a Retry-After longer than the backoff cap: the server may recover earlier.
      const requestedMs = isApiError(error) ? (error.retryAfterMs ?? 0) : 0;
      const retryAfterMs = Math.round(Math.max(backoff.next(), requestedMs > CRD_BACKOFF.maxMs ? 0 : requestedMs));
      const problem = `cannot check the CustomResourceDefinitions: ${messageOf(error)}`;
      logger.warn({ server, retryAfterMs }, `${problem}; trying again`);
      await sleep(retryAfterMs, signal);
    }
  }
}

/** An incompatible CustomResourceDefinition; not retried. */
class UnfitError extends Error {}

async function problemsOf(client: ApiClient, definition: ResourceDefinition, signal: AbortSignal): Promise<string[]> {
  const name = crdNameOf(definition);
  const crd = await readCrd(client, name, signal);
  if (crd === undefined)
    return [
      `the CustomResourceDefinition ${name} is not installed; install it (kinds of this project: kubectl apply -f crds/)`,
    ];
  const problems: string[] = [];
  const { scope, names, versions, preserveUnknownFields } = crd.spec;
  if (names.kind !== definition.kind)
    problems.push(`${name} defines kind ${names.kind}, but the operator expects ${definition.kind}`);
  const scopes = `${describeScope(scope)} in the cluster and ${describeScope(definition.scope)} in the operator`;
  if (scope !== definition.scope)
    problems.push(`${name} is ${scopes}; run gen-operator generate with the CRD of the cluster`);
  const served = versions.filter((version) => version.served).map((version) => version.name);
  const version = versions.find((each) => each.served && each.name === definition.version);
  if (version === undefined) problems.push(`${name} does not serve ${definition.version}, only ${served.join(", ")}`);
  // An untyped kind has no schema to compare.
  else if (Object.keys(definition.schema).length > 0)
    problems.push(...problemsOfVersion(definition, version, { keepsUnknownFields: preserveUnknownFields === true }));
  return problems;
}

function problemsOfVersion(
  definition: ResourceDefinition,
  { name: version, schema, subresources }: CrdVersion,
  keeping: Pick<ClusterSchema, "keepsUnknownFields">,
): string[] {
  const name = crdNameOf(definition);
  const problems: string[] = [];
  if (definition.hasStatusSubresource !== (subresources?.status !== undefined))
    problems.push(
      `${name} ${version} has ${subresources?.status ? "a" : "no"} status subresource in the cluster; ${REMEDY}`,
    );
  const { openAPIV3Schema } = schema ?? {};
  const differences =
    openAPIV3Schema === undefined ? [] : schemaDifferences(definition.schema, { schema: openAPIV3Schema, ...keeping });
  if (differences.length > 0)
    problems.push(
      `${name} ${version} has another schema in the cluster than in the operator: ${describeDifferences(differences)}; ${REMEDY}`,
    );
  return problems;
}

/** The maximum number of paths in a message: the schema of an unrelated CRD with the same name may differ everywhere. */
const MOST_PATHS = 5;

const REMEDY = "apply deploy/generated/crds of this operator, or run gen-operator generate with the CRD of the cluster";

function describeDifferences(differences: readonly SchemaDifference[]): string {
  const named = differences
    .slice(0, MOST_PATHS)
    .map(({ path, expected, found }) => `${path} (expected ${expected}, found ${found})`);
  const more = differences.length - named.length;
  return named.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

async function readCrd(client: ApiClient, name: string, signal: AbortSignal) {
  try {
    return await client.get({ definition: customResourceDefinition }, { name }, { signal });
  } catch (error) {
    if (!isApiError(error, 403)) throw error;
    throw new UnfitError(`checkCrds needs the permission to get customresourcedefinitions: ${error.message}`, {
      cause: error,
    });
  }
}

function describeScope(scope: string): string {
  return scope === "Namespaced" ? "namespaced" : "cluster-scoped";
}

// Schema comparison.
//
// A difference is anything that makes the API server reject, drop, or merge a value differently than expected, or return a value of another type.
// Additional fields and validation rules in the cluster are not differences, and neither is anything that the compiled schema does not declare.

/** A path at which the schemas differ, with the expected and the found value. */
interface SchemaDifference {
  /** Such as `spec.template.containers[].image`; `.*` stands for any key of a map. */
  readonly path: string;
  readonly expected: string;
  readonly found: string;
}

/** The schema of a kind as the cluster serves it. */
export interface ClusterSchema {
  readonly schema: Schema;
  /**
   * Whether the API server keeps undeclared fields (`spec.preserveUnknownFields`, from CRDs created before apiextensions.k8s.io/v1). Default: false
   */
  readonly keepsUnknownFields?: boolean;
}

/** Returns the differences in the order of the compiled schema; empty for an untyped kind. */
export function schemaDifferences(compiled: Schema, { schema, ...cluster }: ClusterSchema): SchemaDifference[] {
  const { keepsUnknownFields = false } = cluster;
  const comparison = new Comparison(compiled.definitions ?? {}, keepsUnknownFields);
  // apiVersion, kind, and metadata are the same in every kind; the API server ignores their schemas in a CRD.
  comparison.compare(withoutFields(compiled, ROOT_FIELDS), schema, "");
  return comparison.differences;
}

const ROOT_FIELDS = ["apiVersion", "kind", "metadata"];
const ANYTHING = "any value";
const NO_FIELD = "no such field";

class Comparison {
  readonly differences: SchemaDifference[] = [];
  readonly #definitions: { readonly [name: string]: Schema };
  readonly #keepsUnknownFields: boolean;

  constructor(definitions: { readonly [name: string]: Schema }, keepsUnknownFields: boolean) {
    this.#definitions = definitions;
    this.#keepsUnknownFields = keepsUnknownFields;
  }

  // Terminates for recursive schemas: it only descends as deep as the schema of the cluster, which is a tree.
  compare(stated: Schema, found: Schema, path: string): void {
    const expected = this.#resolve(stated);
    const types = { expected: typeOf(expected), found: typeOf(found) };
    if (types.expected === undefined && isOpen(expected) && types.found !== undefined)
      return this.#add(path, ANYTHING, types.found);
    // The API server accepts any value for a field without a type.
    if (types.expected !== undefined && types.found !== undefined && types.expected !== types.found)
      return this.#add(path, types.expected, types.found);
    if (expected.nullable === true && found.nullable !== true && types.found !== undefined)
      this.#add(path, "nullable", "not nullable");
    if (types.expected === "array") this.#compareLists(expected, found, path);
    if (types.expected === "object") this.#compareObjects(expected, found, path);
  }

  #compareLists(expected: Schema, found: Schema, path: string): void {
    this.#add(path, describeList(expected), describeList(found));
    if (expected.items !== undefined && found.items !== undefined)
      this.compare(expected.items, found.items, `${path}[]`);
  }

  #compareObjects(expected: Schema, found: Schema, path: string): void {
    const isKept = this.#keepsUnknownFields || isOpen(found) || typeOf(found) === undefined;
    this.#add(path, describeMap(expected), describeMap(found));
    if (isOpen(expected) && !isKept) this.#add(path, "unknown fields kept", "unknown fields dropped");
    const implicit = found["x-kubernetes-embedded-resource"] === true ? ROOT_FIELDS : [];
    for (const [name, property] of Object.entries(withoutFields(expected, implicit).properties ?? {}))
      this.#compareField(property, fieldOf(found, name), { path: pathOf(path, name), isKept });
    const others = otherFieldsOf(expected);
    if (others !== undefined) this.#compareField(others, otherFieldsOf(found), { path: `${path}.*`, isKept });
  }

  #compareField(stated: Schema, found: Schema | undefined, { path, isKept }: { path: string; isKept: boolean }): void {
    if (found !== undefined) return this.compare(stated, found, path);
    if (!isKept) this.#add(path, typeOf(this.#resolve(stated)) ?? ANYTHING, NO_FIELD);
  }

  #resolve({ $ref, ...schema }: Schema): Schema {
    return $ref === undefined ? schema : { ...this.#definitions[$ref], ...schema };
  }

  #add(path: string, expected: string, found: string): void {
    if (expected !== found) this.differences.push({ path: path === "" ? "." : path, expected, found });
  }
}

// The type may also follow from an extension or from other keywords.
function typeOf(schema: Schema): string | undefined {
  if (schema["x-kubernetes-int-or-string"] === true || schema.format === "int-or-string") return "int-or-string";
  if (schema.type !== undefined) return schema.type;
  if (schema.properties !== undefined || schema.additionalProperties !== undefined) return "object";
  return schema.items === undefined ? undefined : "array";
}

function isOpen(schema: Schema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true;
}

// https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy: atomic is the default.
function describeList(schema: Schema): string {
  const type = schema["x-kubernetes-list-type"] ?? "atomic";
  if (type !== "map") return `list type ${type}`;
  // The order of keys does not matter.
  return `list type map by ${[...(schema["x-kubernetes-list-map-keys"] ?? [])].sort().join(" and ")}`;
}

function describeMap(schema: Schema): string {
  return `map type ${schema["x-kubernetes-map-type"] ?? "granular"}`;
}

function fieldOf(schema: Schema, name: string): Schema | undefined {
  const { properties = {} } = schema;
  return Object.hasOwn(properties, name) ? properties[name] : otherFieldsOf(schema);
}

// The schema of `additionalProperties`.
function otherFieldsOf({ additionalProperties }: Schema): Schema | undefined {
  return additionalProperties === true ? {} : additionalProperties || undefined;
}

function withoutFields(schema: Schema, names: readonly string[]): Schema {
  if (schema.properties === undefined || names.length === 0) return schema;
  const properties = Object.entries(schema.properties).filter(([name]) => !names.includes(name));
  return { ...schema, properties: Object.fromEntries(properties) };
}

function pathOf(path: string, name: string): string {
  if (!/^[\w$-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === "" ? name : `${path}.${name}`;
}
