import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

const desired = (): ConfigMapInput => ({ metadata: { name: "x" } });

export const workflow = defineWorkflow(WebPage)
  .dependent("given", {
    resource: ConfigMap,
    mode: "readOnly",
    desired,
  })
  .dependent("created", { resource: ConfigMap, mode: "createOnly" });
