import { defineWorkflow, type ReconcilerOf } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

const workflow = defineWorkflow(WebPage).dependent("configMap", {
  resource: ConfigMap,
  desired: () => ({ metadata: { name: "x" } }),
  readyPostcondition: () => ({ isMet: true, detail: { missing: 1 } }),
});

export const reconciler: ReconcilerOf<typeof workflow, never> = {
  reconcile({ workflow: { dependents } }) {
    dependents.configMap.conditions?.readyPostcondition?.detail?.mising;
    dependents.configMap.conditions?.readyPostconditions;
    dependents.configmap;
  },
};
