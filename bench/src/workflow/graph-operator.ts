// An operator that manages a graph of ConfigMaps for each Graph. The argument is the shape. Prints a line for each reconcile.
import { createLogger, noUpdate, runOperator } from "@gen-operator/runtime";
import { defineController, defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap } from "#webpage/generated/index.js";
import { Graph } from "./graph.js";
import { shapeOf, type Shape, type ShapeName } from "./shapes.js";

const NAME = "gen-operator";

function workflowOf(shape: Shape) {
  let workflow = defineWorkflow(Graph);
  for (const [node, dependsOn] of shape) {
    const options = {
      resource: ConfigMap,
      labelSelector: `bench=${NAME}`,
      desired: ({ primary }: { primary: Graph }) => ({
        metadata: { name: `${primary.metadata.name}-${node}`, labels: { bench: NAME } },
        data: { node },
      }),
      // The type of a workflow contains the names of its dependents, which the compiler does not know in a loop.
      dependsOn: dependsOn as never[],
    };
    workflow = workflow.dependent(node as string, options) as never;
  }
  return workflow;
}

const controller = defineController({
  name: NAME,
  workflow: workflowOf(shapeOf(process.argv[2] as ShapeName)),
  reconciler: {
    reconcile({ primary }: { primary: Graph }) {
      process.stdout.write(`reconciled ${primary.metadata.name}\n`);
      return noUpdate();
    },
  },
});

// The argument is the shape, so it must not be parsed as a flag of the operator.
await runOperator([controller], { args: [], logger: createLogger("warn") });
