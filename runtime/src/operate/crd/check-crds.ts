import { Backoff } from "../../base/backoff.js";
import { sleep } from "../../base/clock.js";
import { isApiError } from "../../base/errors.js";
import { messageOf, type Logger } from "../../base/logger.js";
import { crdNameOf, kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import { customResourceDefinition } from "../../client/custom-resource-definition.js";

/** Where a check says that it waits, and what ends it. */
export interface CheckCrdsOptions {
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

const BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/**
 * Compares what the operator was compiled for with the CustomResourceDefinitions of the cluster; throws one error that lists everything that does
 * not fit (JOSDK checkCRDAndValidateLocalModel). An API server that does not answer is asked again until the signal is aborted.
 */
export async function checkCrds(
  client: ApiClient,
  definitions: Iterable<ResourceDefinition>,
  { logger, signal }: CheckCrdsOptions,
): Promise<void> {
  const { server } = client.connection;
  const kinds = new Map([...definitions].map((each) => [kindNameOf(each), each]));
  const custom = [...kinds.values()].filter(({ isCustom }) => isCustom);
  const backoff = new Backoff(BACKOFF);
  for (;;) {
    try {
      const problems = (await Promise.all(custom.map((each) => problemsOf(client, each, signal)))).flat();
      if (problems.length === 0) return;
      throw new UnfitError(`${server}: ${problems.join("; ")}`);
    } catch (error) {
      if (error instanceof UnfitError || signal.aborted) throw error;
      const retryAfterMs = Math.round(backoff.next());
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
    return [`the CustomResourceDefinition ${name} is not installed; install it with kubectl apply -f crds/`];
  const problems: string[] = [];
  const { scope, names, versions } = crd.spec;
  if (names.kind !== definition.kind) problems.push(`${name} is of kind ${names.kind}, and not ${definition.kind}`);
  const scopes = `${describeScope(scope)} in the cluster and ${describeScope(definition.scope)} in the operator`;
  if (scope !== definition.scope)
    problems.push(`${name} is ${scopes}; run gen-operator generate with the CRD of the cluster`);
  const served = versions.filter((version) => version.served).map((version) => version.name);
  if (!served.includes(definition.version))
    problems.push(`${name} does not serve ${definition.version}, only ${served.join(", ")}`);
  return problems;
}

async function readCrd(client: ApiClient, name: string, signal: AbortSignal) {
  try {
    return await client.get({ definition: customResourceDefinition }, { name }, { signal });
  } catch (error) {
    if (!isApiError(error, 403)) throw error;
    throw new UnfitError(`checksCrds needs the permission to get customresourcedefinitions: ${error.message}`, {
      cause: error,
    });
  }
}

function describeScope(scope: string): string {
  return scope === "Namespaced" ? "namespaced" : "cluster-scoped";
}
