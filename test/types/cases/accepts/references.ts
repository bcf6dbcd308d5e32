import { ready } from "@gen-operator/runtime";
import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, Deployment, WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

// Objects of somebody else by their names, with the types of what sees them.
export const workflow = defineWorkflow(WebPage)
  .reference("settings", {
    resource: ConfigMap,
    ref: { name: ({ primary }) => primary.spec.html, namespace: ({ primary }) => primary.metadata.labels?.["from"] },
    filters: { onUpdate: (object, old) => object.data !== old.data },
  })
  .reference("backend", {
    resource: Deployment,
    ref: { name: "backend", namespace: "shared" },
    dependsOn: ["settings"],
    readyPostcondition: ready,
    reconcilePrecondition: ({ live, secondary }) => {
      type Seen = Expect<Equal<typeof live, Deployment | undefined>>;
      const isSeen: Seen = true;
      return isSeen && secondary.settings.data !== undefined;
    },
  })
  .dependent("out", {
    resource: ConfigMap,
    dependsOn: ["backend", { name: "settings", optional: true }],
    desired: ({ secondary }) => ({
      metadata: { name: secondary.backend.metadata.name },
      data: { settings: secondary.settings.metadata.name },
    }),
  });
