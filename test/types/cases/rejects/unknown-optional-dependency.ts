import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

const desired = (): ConfigMapInput => ({ metadata: { name: "x" } });

export const workflow = defineWorkflow(WebPage)
  .dependent("configMap", { resource: ConfigMap, desired })
  .dependent("second", { resource: ConfigMap, desired, dependsOn: [{ name: "configmap", optional: true }] })
  .dependent("third", { resource: ConfigMap, desired, dependsOn: ["second", { name: "configMap", optional: false }] });
