import { patchResourceAndStatus, updateStatus, withoutRetry } from "@gen-operator/runtime";
import { defineController, defineWorkflow, type Reconciler } from "@gen-operator/runtime/codegen";
import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

interface Status {
  readonly readyReplicas?: number;
  readonly conditions?: readonly { readonly type: string; readonly status: "True" | "False" }[];
  readonly free?: { readonly [name: string]: string };
}

export const direct: WebPageReconciler = {
  reconcile: () => updateStatus({ ready: true, redy: false }),
};

export const eventual: WebPageReconciler = {
  reconcile: async () => updateStatus({ redy: true }, { rescheduleAfterMs: 5 }),
};

export const slips: readonly WebPageReconciler[] = [
  { reconcile: () => updateStatus({ READY: true }) },
  { reconcile: () => updateStatus({ raedy: true }) },
  { reconcile: () => updateStatus({ readyy: true }) },
  { reconcile: () => updateStatus({ reads: true }) },
  { reconcile: () => updateStatus({ red: true }) },
];

const wrong = { ready: true, redy: false };

export const deep: Reconciler<WebPage, object, Status> = {
  reconcile: ({ primary }) => {
    if (primary.spec.exposed === true)
      return updateStatus({ conditions: [{ type: "Ready", status: "True", reson: "x" }] });
    if (primary.spec.host === "") return patchResourceAndStatus({ metadata: {} }, { readyReplica: 1 });
    return updateStatus({ readyReplicas: 1, free: { any: "thing" } });
  },
  updateErrorStatus: () => withoutRetry(updateStatus({ readyReplica: 1, readyReplicas: 1 })),
};

export const variable: WebPageReconciler = { reconcile: () => updateStatus(wrong) };

export const controller = defineController({
  name: "pages",
  workflow: defineWorkflow(WebPage),
  reconciler: deep,
});
