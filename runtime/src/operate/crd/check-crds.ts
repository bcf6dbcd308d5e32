import { Backoff, sleep } from "../../base/clock.js";
import { isApiError } from "../../base/errors.js";
import { messageOf, type Logger } from "../../base/logger.js";
import { crdNameOf, kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import { variantOf, type ApiClient } from "../../client/api-client.js";
import { customResourceDefinition, type CrdVersion } from "../../client/custom-resource-definition.js";
import { schemaDifferences, type ClusterSchema, type SchemaDifference } from "./schema-difference.js";

const BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/**
 * Compares what the operator was compiled for with the CustomResourceDefinitions of the cluster; throws one error that lists everything that does
 * not fit (JOSDK checkCRDAndValidateLocalModel). An API server that does not answer, or answers with an error but 403 and 404, is asked again
 * until the signal is aborted.
 */
export async function checkCrds(
  client: ApiClient,
  definitions: Iterable<ResourceDefinition>,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const { server } = client.connection;
  // The client repeats requests in silence, for up to a minute.
  const asking = variantOf(client, { maxAttempts: 1 });
  const kinds = new Map([...definitions].map((each) => [kindNameOf(each), each]));
  const custom = [...kinds.values()].filter(({ isCustom }) => isCustom);
  const backoff = new Backoff(BACKOFF);
  for (;;) {
    try {
      const problems = (await Promise.all(custom.map((each) => problemsOf(asking, each, signal)))).flat();
      if (problems.length === 0) return;
      throw new UnfitError(`${server}: ${problems.join("; ")}`);
    } catch (error) {
      if (error instanceof UnfitError || signal.aborted) throw error;
      // A server that asks for longer is asked again earlier: its trouble may be over.
      const requestedMs = isApiError(error) ? (error.retryAfterMs ?? 0) : 0;
      const retryAfterMs = Math.round(Math.max(backoff.next(), requestedMs > BACKOFF.maxMs ? 0 : requestedMs));
      const problem = `cannot check the CustomResourceDefinitions: ${messageOf(error)}`;
      logger.warn({ server, retryAfterMs }, `${problem}; trying again`);
      await sleep(retryAfterMs, signal);
    }
  }
}

/** What no further attempt would change. */
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
  if (names.kind !== definition.kind) problems.push(`${name} is of kind ${names.kind}, and not ${definition.kind}`);
  const scopes = `${describeScope(scope)} in the cluster and ${describeScope(definition.scope)} in the operator`;
  if (scope !== definition.scope)
    problems.push(`${name} is ${scopes}; run gen-operator generate with the CRD of the cluster`);
  const served = versions.filter((version) => version.served).map((version) => version.name);
  const version = versions.find((each) => each.served && each.name === definition.version);
  if (version === undefined) problems.push(`${name} does not serve ${definition.version}, only ${served.join(", ")}`);
  // Of an untyped kind nothing is known to compare.
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
      `${name} ${version} has another schema in the cluster than in the operator: ${describe(differences)}; ${REMEDY}`,
    );
  return problems;
}

/** How many paths a message names; a definition of another product may differ everywhere. */
const MOST_PATHS = 5;

const REMEDY = "apply deploy/generated/crds of this operator, or run gen-operator generate with the CRD of the cluster";

function describe(differences: readonly SchemaDifference[]): string {
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
