import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import { isKubernetes } from "../workflow/definition/workflow-definition.js";

/** Throws if a dependent lives in a cluster for which the operator has no connection. */
export function checkClusters(controllers: readonly ControllerDefinition[], clusters: readonly string[]): void {
  for (const { name, workflow } of controllers)
    for (const { name: dependent, cluster } of workflow.dependents.filter(isKubernetes))
      if (cluster !== undefined && !clusters.includes(cluster))
        throw new Error(
          `dependent "${dependent}" of controller "${name}" lives in cluster "${cluster}", which the operator does not know; give it a ` +
            `connection in its option clusters, which has ${clusters.join(", ") || "none"}`,
        );
}
