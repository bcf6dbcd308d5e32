import { defineWorkflow, guarded, type Desired } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";
import type { Service } from "../../../../fixtures/samples/webpage/src/generated/index.js";

type Hosted = WebPage & { readonly spec: { readonly host: {} } };

const hosted: Desired<WebPage, object, ConfigMapInput, Hosted> = ({ primary }) => ({
  metadata: { name: primary.spec.host },
});

const withService: Desired<WebPage, { readonly service: Service }, ConfigMapInput, Hosted> = ({ secondary }) => ({
  metadata: { name: secondary.service.metadata.name },
});

const misspelled: Desired<WebPage, object, ConfigMapInput, Hosted> = ({ primary }) => ({
  metadata: { name: primary.spec.hosst },
});

export const workflow = defineWorkflow(WebPage)
  .dependent("unguarded", { resource: ConfigMap, desired: hosted })
  .dependent("alone", { resource: ConfigMap, desired: guarded(withService) })
  .dependent("misspelled", { resource: ConfigMap, desired: guarded(misspelled) })
  .dependent("deleted", {
    resource: ConfigMap,
    desired: guarded(hosted),
    deletePostcondition: ({ primary }) => primary.spec.host.length > 0,
    readyPostcondition: ({ primary }) => primary.spec.host.length > 0,
    operations: { delete: ({ primary, next }) => (primary.spec.host.length > 0 ? next() : undefined) },
  });
