import { noUpdate } from "@gen-operator/runtime";
import type { __Primary__Reconciler } from "../generated/__controller__/types.js";

/** Runs whenever a __Primary__ or one of its dependents changes. context.workflow.reconcile() reconciles the dependents. */
export const reconciler: __Primary__Reconciler = {
  reconcile: async ({ primary, context }) => {
    const { isReady } = await context.workflow.reconcile();
    context.logger.info({ name: primary.metadata.name, isReady }, "reconciled");
    return noUpdate();
  },
};
