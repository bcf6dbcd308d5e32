import type { ApiClient } from "@gen-operator/runtime";
import { Namespace } from "@gen-operator/kinds/core/v1";
import { WebPage, type WebPageInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export const nowhere = WebPage.create({ metadata: { name: "x" }, spec: { html: "x" } });
export const nameless = WebPage.create({ metadata: { namespace: "x" }, spec: { html: "x" } });
export const misspelled = WebPage.create({ metadata: { name: "x", namespace: "x" }, spec: { html: "x", replica: 1 } });
export const label = WebPage.create({ metadata: { name: "x", namespace: "x", label: {} }, spec: { html: "x" } });
export const placed = Namespace.create({ metadata: { name: "x", namespace: "x" } });
export const generated: WebPageInput = { metadata: { generateName: "x-" }, spec: { html: "x" } };
export const incomplete: WebPage["spec"] = { html: "x" };

export const create = (client: ApiClient) =>
  client.create(WebPage, { metadata: { name: "x", namespace: "x" }, spec: { html: "x", replica: 1 } });

export const apply = (client: ApiClient) =>
  client.apply(WebPage, { metadata: { name: "x", namespace: "x" }, spec: { replica: 2 } }, { fieldManager: "me" });
