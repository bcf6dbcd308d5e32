import { noUpdate } from "@gen-operator/runtime";
import { defineController, defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap } from "#webpage/generated/index.js";
import { Graph } from "../workflow/graph.js";

const workflow = defineWorkflow(Graph).dependent("maps", {
  resource: ConfigMap,
  bulk: {},
  desired: ({ primary }) =>
    Object.fromEntries(
      Array.from({ length: primary.spec.size ?? 0 }, (_, index) => [
        `item-${index}`,
        { metadata: { name: `${primary.metadata.name}-${index}` }, data: { index: String(index) } },
      ]),
    ),
});

/** A controller that manages as many ConfigMaps as the spec of a Graph requests. */
export const bulkController = defineController({
  name: "bulk",
  workflow,
  reconciler: { reconcile: () => noUpdate() },
});
