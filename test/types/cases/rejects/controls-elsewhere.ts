import { keepFinalizer, updateStatus, withoutRetry } from "@gen-operator/runtime";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export const successful: WebPageReconciler = {
  reconcile: () => withoutRetry(updateStatus({ ready: true })),
};
export const kept: WebPageReconciler = {
  reconcile: () => keepFinalizer(),
  updateErrorStatus: () => keepFinalizer(),
};
