import { updateStatus } from "@gen-operator/runtime";
import type { WebPageReconciler } from "../generated/gen-operator/types.js";

/** Reports which generation has its four dependents. */
export const reconciler: WebPageReconciler = {
  reconcile: ({ primary }) => updateStatus({ observedGeneration: primary.metadata.generation }),
};
