import { updateStatus, withoutRetry } from "@gen-operator/runtime";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export const reconciler: WebPageReconciler = {
  reconcile: () => withoutRetry(updateStatus({ ready: true })),
};
