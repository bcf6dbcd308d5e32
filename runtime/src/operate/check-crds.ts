import { isApiError } from "../base/errors.js";
import { crdNameOf, kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import { customResourceDefinition, type CustomResourceDefinition } from "../client/custom-resource-definition.js";

/**
 * Compares what the operator was compiled for with the CustomResourceDefinitions of the cluster; throws one error that lists everything
 * that does not fit (JOSDK checkCRDAndValidateLocalModel, which looks at the scope only).
 */
export async function checkCrds(client: ApiClient, definitions: Iterable<ResourceDefinition>): Promise<void> {
  const custom = [...new Map([...definitions].map((each) => [kindNameOf(each), each])).values()].filter(
    ({ isCustom }) => isCustom,
  );
  const problems = (await Promise.all(custom.map((definition) => problemsOf(client, definition)))).flat();
  if (problems.length > 0) throw new Error(`${client.connection.server}: ${problems.join("; ")}`);
}

async function problemsOf(client: ApiClient, definition: ResourceDefinition): Promise<string[]> {
  const name = crdNameOf(definition);
  const crd = await readCrd(client, name);
  if (crd === undefined)
    return [`the CustomResourceDefinition ${name} is not installed; install it with kubectl apply -f crds/`];
  const problems: string[] = [];
  const { scope, names, versions } = crd.spec;
  if (names.kind !== definition.kind) problems.push(`${name} is of kind ${names.kind}, and not ${definition.kind}`);
  if (scope !== definition.scope)
    problems.push(
      `${name} is ${describeScope(scope)} in the cluster and ${describeScope(definition.scope)} in the operator; run gen-operator generate with the CRD of the cluster`,
    );
  if (!versions.some((version) => version.name === definition.version && version.served)) {
    const served = versions.filter((version) => version.served).map((version) => version.name);
    problems.push(`${name} does not serve ${definition.version}, only ${served.join(", ")}`);
  }
  return problems;
}

async function readCrd(client: ApiClient, name: string): Promise<CustomResourceDefinition | undefined> {
  try {
    return await client.get({ definition: customResourceDefinition }, { name });
  } catch (error) {
    if (!isApiError(error, 403)) throw error;
    throw new Error(`checksCrds needs the permission to get customresourcedefinitions: ${error.message}`, {
      cause: error,
    });
  }
}

function describeScope(scope: string): string {
  return scope === "Namespaced" ? "namespaced" : "cluster-scoped";
}
