import { defineController, defineWorkflow } from "@gen-operator/runtime/codegen";
import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

declare const reconciler: WebPageReconciler;

export const controller = defineController({
  name: "pages",
  workflow: defineWorkflow(WebPage),
  reconciler,
  filters: { generic: ({ data }) => data !== undefined },
});
