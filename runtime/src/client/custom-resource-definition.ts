import type { KubernetesObject, StatusCondition } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";

/** What the runtime reads of a CustomResourceDefinition. */
export interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: {
    readonly scope: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
}

/** The kind of CustomResourceDefinitions. */
export const customResourceDefinition: ResourceDefinition<CustomResourceDefinition> = {
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  scope: "Cluster",
  apiVersion: "apiextensions.k8s.io/v1",
  hasStatusSubresource: true,
  isCustom: false,
  schema: {},
};
