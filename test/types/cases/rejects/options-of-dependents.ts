import { ready } from "@gen-operator/runtime";
import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

const desired = (): ConfigMapInput => ({ metadata: { name: "x" } });

export const workflow = defineWorkflow(WebPage)
  .dependent("a", { resource: ConfigMap, desired, mode: "createonly" })
  .dependent("b", { resource: ConfigMap, desired, deletion: "leave" })
  .dependent("c", { resource: ConfigMap, desired, matcher: (one, other) => one.data === other.spec })
  .dependent("d", { resource: ConfigMap, desired, timeout: 5 })
  .dependent("e", {
    resource: ConfigMap,
    desired,
    readyPostcondition: ({ live }) => live?.spec === ready,
  })
  .dependent("f", { resource: ConfigMap, desired, existing: "adpt" })
  .dependent("g", { resource: ConfigMap, desired, existing: ({ live }) => live.spec !== undefined })
  .dependent("h", { resource: ConfigMap, desired, existing: ({ live }) => live.data?.["a"] });
