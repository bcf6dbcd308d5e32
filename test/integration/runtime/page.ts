// The kinds of these tests. A process that runs an operator loads them alone, and no API server.
import type { KubernetesObject, StatusCondition } from "#runtime/base/kubernetes-object.js";
import { classOf, customDefinition, type CrdObject } from "../../support/kinds/kind-definitions.js";
import { configMapsWith } from "../../support/runtime/config-maps.js";

export { ConfigMap, Secret, type DataObject } from "../../support/runtime/config-maps.js";

/** The primary of every test here. */
export interface Page extends KubernetesObject {
  spec: { text: string; more?: string };
  status?: { text?: string; observedGeneration?: number; conditions?: readonly StatusCondition[] };
}

/** The definition of Pages as it is installed. */
export const pageCrd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "pages.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { kind: "Page", plural: "pages", singular: "page", listKind: "PageList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: { type: "object", properties: { text: { type: "string" }, more: { type: "string" } } },
              status: {
                type: "object",
                properties: {
                  text: { type: "string" },
                  observedGeneration: { type: "integer" },
                  conditions: {
                    type: "array",
                    items: {
                      type: "object",
                      required: ["type", "status", "reason", "message", "lastTransitionTime"],
                      properties: {
                        type: { type: "string" },
                        status: { type: "string" },
                        reason: { type: "string" },
                        message: { type: "string" },
                        lastTransitionTime: { type: "string", format: "date-time" },
                        observedGeneration: { type: "integer" },
                      },
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
} as const satisfies CrdObject & { readonly [member: string]: unknown };

export const Page = classOf<Page>(customDefinition(pageCrd));

/** Builds a dependent: a ConfigMap named after the page and the dependent, with the text of the page. */
export const configMapOf = configMapsWith<Page>(({ spec: { text } }) => ({ text }));
