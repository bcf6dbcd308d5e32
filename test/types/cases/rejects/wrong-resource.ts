import { patchResource } from "@gen-operator/runtime";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export const reconciler: WebPageReconciler = {
  reconcile: () => patchResource({ spec: { html: 5 } }),
};
