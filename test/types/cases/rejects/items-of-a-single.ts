import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

const desired = (): ConfigMapInput => ({ metadata: { name: "x" } });

export const workflow = defineWorkflow(WebPage)
  .dependent("single", { resource: ConfigMap, desired })
  .dependent("many", { resource: ConfigMap, bulk: {}, desired: () => ({ a: desired() }) })
  .dependent("ofSingle", {
    resource: ConfigMap,
    bulk: {},
    desired: () => ({}),
    itemsDependOn: ["single"],
  })
  .dependent("bySingle", {
    resource: ConfigMap,
    desired,
    itemsDependOn: ["many"],
  });
