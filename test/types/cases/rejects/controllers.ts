import { defineController, defineWorkflow, type Reconciler } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

declare const reconciler: WebPageReconciler;
declare const another: Reconciler<ConfigMap, object, object>;

const common = { name: "pages", workflow: defineWorkflow(WebPage) };

export const controllers = [
  defineController({ ...common, reconciler, filters: { generic: ({ data }) => data !== undefined } }),
  defineController({ ...common, indexes: { text: ({ data }) => [data] } }),
  defineController({ ...common, reconciler: another }),
  defineController({ ...common, reconciler: { reconcile: ({ primary }) => primary.data } }),
];
