/** Returns the CRD of Widgets in the group example.com, with the subresources status and scale. */
export function widgetDefinition(): object {
  const schema = {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties: {
          size: { type: "integer", default: 3, minimum: 1 },
          replicas: { type: "integer" },
          names: { type: "array", items: { type: "string" } },
        },
      },
      status: { type: "object", properties: { ready: { type: "boolean" }, replicas: { type: "integer" } } },
    },
  };
  const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural: "widgets", kind: "Widget", shortNames: ["wd"] },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {}, scale },
        },
      ],
    },
  };
}

/** The path of Widgets in the namespace default. */
export const WIDGETS = "/apis/example.com/v1/namespaces/default/widgets";

/** The path of ConfigMaps in the namespace default. */
export const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

export function widget(name: string, spec: object = {}, metadata: object = {}): object {
  return { apiVersion: "example.com/v1", kind: "Widget", metadata: { name, ...metadata }, spec };
}

export function configMap(name: string, data: Record<string, string> = {}, metadata: object = {}): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data };
}
