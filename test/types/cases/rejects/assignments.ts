import type { Deployment } from "@gen-operator/kinds/apps/v1";
import { asStored, type DependentMatcher, type UntypedResource } from "@gen-operator/runtime";
import {
  WebPage,
  type ConfigMapInput,
  type WebPageInput,
} from "../../../../fixtures/samples/webpage/src/generated/index.js";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

// Objects that were read are frozen, at any depth.
export const reconciler: WebPageReconciler = {
  reconcile({ primary, secondary }) {
    primary.spec.replicas = 5;
    primary.metadata.labels = {};
    primary.status = { ready: true };
    primary.status?.conditions?.push({ type: "", status: "True", reason: "", message: "", lastTransitionTime: "" });
    primary.metadata.finalizers?.sort();
    if (secondary.configMap?.data !== undefined) secondary.configMap.data["a"] = "b";
    delete primary.metadata.annotations?.["a"];
  },
};

export function scale(deployment: Deployment, untyped: UntypedResource): void {
  deployment.spec!.template.spec!.containers[0]!.image = "nginx";
  untyped["spec"] = {};
}

// So are the types of what is written, which it may contain.
export function fill(input: WebPageInput, config: ConfigMapInput): void {
  input.spec.html = "x";
  config.data!["a"] = "b";
}

// Nothing says that these are stored.
export const created: string = WebPage.create({ metadata: { name: "x", namespace: "x" }, spec: { html: "x" } }).metadata
  .uid;
export const parsed: WebPage = WebPage.parse({});
export const nowhere: WebPage = asStored(WebPage, { metadata: { name: "x" }, spec: { html: "x" } });
export const matcher: DependentMatcher<WebPage> = (desired, live) => desired.metadata.uid.length === live.spec.replicas;
