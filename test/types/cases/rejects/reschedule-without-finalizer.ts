import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export const reconciler: WebPageReconciler = {
  reconcile() {},
  cleanup: () => ({ removeFinalizer: true, rescheduleAfterMs: 5 }),
};
