import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export const workflow = defineWorkflow(WebPage)
  .dependent("settings", { resource: ConfigMap, desired: (): ConfigMapInput => ({ metadata: { name: "x" } }) })
  .dependent("second", {
    resource: ConfigMap,
    dependsOn: [{ name: "settings", optional: true }],
    desired: ({ secondary }): ConfigMapInput => ({ metadata: { name: secondary.settings.metadata.name } }),
  });
