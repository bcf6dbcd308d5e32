import type { ApiClient, Unstored } from "@gen-operator/runtime";
import { ConfigMap, Namespace } from "@gen-operator/kinds/core/v1";
import { WebPage, type WebPageInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

// What is read has its defaults and, of a namespaced kind, its namespace.
export function addressOf({ metadata, spec }: WebPage): string {
  const replicas: number = spec.replicas;
  return `${metadata.name}.${metadata.namespace.toUpperCase()}.${replicas.toFixed()}.${spec.exposed ? "" : "local"}`;
}

// What is written may leave them out.
export const desired: WebPageInput = { metadata: { name: "page" }, spec: { html: "x", replicas: undefined } };

export const created: Unstored<WebPage> = WebPage.create({
  metadata: { name: "x", namespace: "x" },
  spec: { html: "x" },
});
export const generated = WebPage.create({ metadata: { generateName: "x-", namespace: "x" }, spec: { html: "x" } });
export const name: string = generated.metadata.name;
export const cluster = Namespace.create({ metadata: { name: "x" } });
export const unplaced: undefined = cluster.metadata.namespace;

export async function create(client: ApiClient): Promise<WebPage> {
  await client.create(ConfigMap, { metadata: { generateName: "x-", namespace: "x" }, data: {} });
  return client.create(WebPage, { metadata: { name: "x", namespace: "x" }, spec: { html: "x" } });
}

// An apply states some of the fields.
export async function apply(client: ApiClient): Promise<void> {
  const metadata = { name: "x", namespace: "x" };
  await client.apply(ConfigMap, { metadata, data: { a: "1" } }, { fieldManager: "me" });
  await client.apply(WebPage, { metadata, spec: { replicas: 2 } }, { fieldManager: "me" });
}

// What kubectl prints is an object.
export const printed: WebPage = {
  apiVersion: "example.com/v1",
  kind: "WebPage",
  metadata: {
    name: "page",
    namespace: "default",
    creationTimestamp: "2026-01-01T00:00:00Z",
    uid: "8ae48a44-5d1b-4c5a-9a3f-3c1c5b1d9c0e",
    resourceVersion: "7",
    generation: 1,
    selfLink: "/apis/example.com/v1/namespaces/default/webpages/page",
    ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "1", controller: true }],
    managedFields: [{ manager: "kubectl", operation: "Apply", fieldsType: "FieldsV1", fieldsV1: { "f:spec": {} } }],
  },
  spec: { html: "x", replicas: 1, exposed: false },
};
