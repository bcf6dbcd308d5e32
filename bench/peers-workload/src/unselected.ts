import { createLogger, runOperator } from "@gen-operator/runtime";
import { webPageController } from "./generated/index.js";

// As main.ts, but without the selectors that somebody wrote by hand.
const { workflow } = webPageController;
const dependents = workflow.dependents.map((dependent) => {
  const { labelSelector: _, ...rest } = dependent as typeof dependent & { readonly labelSelector?: string };
  return rest as typeof dependent;
});
const controller = { ...webPageController, workflow: { ...workflow, dependents }, maxConcurrentReconciles: 10 };
await runOperator([controller], { logger: createLogger("warn") });
