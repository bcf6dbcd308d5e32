import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

const desired = (): ConfigMapInput => ({ metadata: { name: "x" } });

export const workflow = defineWorkflow(WebPage)
  .dependent("login", { resource: ConfigMap, desired })
  .external("database", {
    source: { kind: "eventSource", name: "databases" },
    dependsOn: ["login"],
    idOf: (id: string) => id,
    delete: (_, { secondary }) => void secondary.login.data,
    deletePostcondition: ({ secondary }) => secondary.login.data === undefined,
  })
  .dependent("server", {
    resource: ConfigMap,
    desired,
    dependsOn: ["login"],
    deletion: "ordered",
    operations: { delete: ({ secondary, next }) => (secondary.login.data === undefined ? next() : undefined) },
  });
