import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import { checkCrds } from "../operate/crd/check-crds.js";
import type { ReconcilerParts } from "./dependent-reconcilers.js";
import { dependentsOf, type ControllerDefinition } from "../reconcile/controller-definition.js";
import { isKubernetes } from "../workflow/definition/workflow-definition.js";

/** Throws if a dependent lives in a cluster for which the operator has no connection. */
export function checkClusters(controllers: readonly ControllerDefinition[], clusters: readonly string[]): void {
  for (const controller of controllers)
    for (const { name: dependent, cluster } of dependentsOf(controller).filter(isKubernetes))
      if (cluster !== undefined && !clusters.includes(cluster))
        throw new Error(
          `dependent "${dependent}" of controller "${controller.name}" lives in cluster "${cluster}", which the operator does not know; give it a ` +
            `connection in its option clusters, which has ${clusters.join(", ") || "none"}`,
        );
}

/** Compares the kinds that controllers need with what their clusters serve; throws if one differs. */
export async function checkDefinitions(
  controllers: readonly ControllerDefinition[],
  { client, clusters, ...options }: Parameters<typeof checkCrds>[2] & Pick<ReconcilerParts, "client" | "clusters">,
): Promise<void> {
  const check = (cluster: ApiClient, name?: string) => {
    const definitions = controllers.flatMap((controller) => definitionsOf(controller, name));
    return checkCrds(cluster, definitions, options);
  };
  await Promise.all([check(client), ...[...clusters].map(([name, cluster]) => check(cluster, name))]);
}

// A kind with an activation condition may be absent.
function definitionsOf(controller: ControllerDefinition, cluster: string | undefined): ResourceDefinition[] {
  const needed = dependentsOf(controller)
    .filter(isKubernetes)
    .filter((each) => each.activationCondition === undefined && each.cluster === cluster);
  return [...(cluster === undefined ? [controller.workflow.primary] : []), ...needed.map(({ resource }) => resource)];
}
