// The kinds and the controller of these scenarios.
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { isRealApiServer } from "../../../../support/api/api-server.js";
import { Page } from "../../page.js";
import type { Scene } from "./scene.js";

export { ConfigMap, Page, Secret, type DataObject } from "../../page.js";

/** Longer than an operator has to do nothing to be at rest. */
const MAX_RETRY_MS = isRealApiServer ? 1_000 : 200;

interface Stated extends Partial<Omit<ControllerDefinition, "workflow" | "name">> {
  readonly name?: string;
  readonly dependents: readonly object[];
  readonly primary?: WorkflowDefinition["primary"];
  readonly workflow?: Partial<WorkflowDefinition>;
  /** Earlier names of the controller. */
  readonly formerNames?: readonly string[];
}

/** Returns a controller of the pages in the namespace of a scene, which never gives up. */
export function textController(scene: Scene, { dependents, primary, workflow, ...rest }: Stated): ControllerDefinition {
  return {
    name: scene.id,
    namespaces: [scene.namespace],
    retry: { initialIntervalMs: 50, maxIntervalMs: MAX_RETRY_MS, maxRetries: -1 },
    ...rest,
    workflow: {
      primary: primary ?? Page.definition,
      // A scenario may state an option that the runtime does not have yet.
      dependents: dependents as WorkflowDefinition["dependents"],
      ...workflow,
    },
  };
}
