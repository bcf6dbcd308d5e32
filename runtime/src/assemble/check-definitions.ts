import type { Logger } from "../base/logger.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import { checkCrds } from "../operate/check-crds.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import { isKubernetes } from "../workflow/definition/workflow-definition.js";

/** Where definitions are looked up. */
export interface DefinitionCheck {
  readonly client: ApiClient;
  /** The clients of the other clusters, by their names. */
  readonly clusters: ReadonlyMap<string, ApiClient>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Compares the kinds that controllers need with what their clusters serve; throws if one differs. */
export async function checkDefinitions(
  controllers: readonly ControllerDefinition[],
  { client, clusters, logger, signal }: DefinitionCheck,
): Promise<void> {
  const check = (cluster: ApiClient, name?: string) =>
    checkCrds(
      cluster,
      controllers.flatMap((controller) => definitionsOf(controller, name)),
      { logger, signal },
    );
  await Promise.all([check(client), ...[...clusters].map(([name, cluster]) => check(cluster, name))]);
}

// A kind with an activation condition may be absent.
function definitionsOf({ workflow }: ControllerDefinition, cluster: string | undefined): ResourceDefinition[] {
  const needed = workflow.dependents
    .filter(isKubernetes)
    .filter((each) => each.activationCondition === undefined && each.cluster === cluster);
  return [...(cluster === undefined ? [workflow.primary] : []), ...needed.map(({ resource }) => resource)];
}
