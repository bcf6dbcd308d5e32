// The kinds of these tests. A process that runs an operator loads them alone, and no API server.
import type { KubernetesObject, StatusCondition } from "#runtime/base/kubernetes-object.js";
import type { Conditions, KubernetesDependent } from "#runtime/workflow/definition/workflow-definition.js";
import { builtinDefinition, classOf, customDefinition, type CrdObject } from "../../support/kinds/kind-definitions.js";

/** The primary of every test here. */
export interface Page extends KubernetesObject {
  spec: { text: string; more?: string };
  status?: { text?: string; observedGeneration?: number; conditions?: readonly StatusCondition[] };
}

/** A ConfigMap or a Secret. */
export interface DataObject extends KubernetesObject {
  data?: { [key: string]: string };
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
export const ConfigMap = classOf<DataObject>(builtinDefinition("v1", "ConfigMap"));
export const Secret = classOf<DataObject>(builtinDefinition("v1", "Secret"));

type Args = {
  primary: Page;
  secondary: { [name: string]: KubernetesObject | undefined };
  context: { signal: AbortSignal };
};

/** Builds a dependent: a ConfigMap named after the page and the dependent, with the text of the page. */
export function configMapOf(
  name: string,
  rest: Partial<Omit<KubernetesDependent, "desired" | keyof Conditions>> & {
    readonly [Name in keyof Conditions]?: (args: never) => unknown;
  } & { desired?: (args: Args) => unknown } = {},
): KubernetesDependent {
  return {
    name,
    resource: ConfigMap.definition,
    dependsOn: [],
    desired: ({ primary }: Args) => ({
      metadata: { name: `${primary.metadata.name}-${name}` },
      data: { text: primary.spec.text },
    }),
    ...(rest as unknown as Partial<KubernetesDependent>),
  };
}
