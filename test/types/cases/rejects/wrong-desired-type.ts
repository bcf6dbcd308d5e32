import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";
import * as configMapDependent from "./stubs/desired-of-another-kind.js";

export const workflow = defineWorkflow(WebPage).dependent("configMap", {
  resource: ConfigMap,
  desired: configMapDependent.desired,
});
