import type { Unstored } from "@gen-operator/runtime";
import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

// Optional values are passed on as they are, also with exactOptionalPropertyTypes.
export function copyOf({ metadata, spec }: WebPage): Unstored<WebPage> {
  return WebPage.create({
    metadata: { name: `${metadata.name}-copy`, namespace: metadata.namespace, labels: metadata.labels },
    spec: { html: spec.html, host: spec.host, replicas: spec.replicas, exposed: undefined },
  });
}

export const parsed: Unstored<WebPage> = WebPage.parse({});
