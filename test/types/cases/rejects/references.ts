import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export const workflow = defineWorkflow(WebPage)
  .reference("a", { resource: ConfigMap, ref: { name: ({ primary }) => primary.spec.hmtl } })
  .reference("b", { resource: ConfigMap, ref: { name: ({ primary }) => primary.spec.replicas } })
  .reference("c", { resource: ConfigMap, ref: { namespace: "shared" } })
  .reference("d", { resource: ConfigMap, ref: { name: "d" }, desired: () => ({ metadata: { name: "d" } }) })
  .reference("e", { resource: ConfigMap, ref: { name: "e" }, dependsOn: ["f"] });
