import { noUpdate } from "@gen-operator/runtime";
import type { __Primary__Reconciler } from "../generated/__controller__/types.js";

/** Runs after the workflow, whenever a __Primary__ or one of its dependents changes. Return updateStatus({ … }) to update its status. */
export const reconciler: __Primary__Reconciler = {
  reconcile: ({ primary, workflow, context }) => {
    context.logger.info({ name: primary.metadata.name, isReady: workflow.isReady }, "reconciled");
    return noUpdate();
  },
};
