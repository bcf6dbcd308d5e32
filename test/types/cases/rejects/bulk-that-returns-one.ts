import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

const desired = (): ConfigMapInput => ({ metadata: { name: "x" } });

export const bulk = defineWorkflow(WebPage).dependent("many", {
  resource: ConfigMap,
  bulk: {},
  desired,
});

export const single = defineWorkflow(WebPage).dependent("one", {
  resource: ConfigMap,
  desired: () => ({ a: desired() }),
});
