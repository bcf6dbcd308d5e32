import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";

/** The watched kind. */
export const deployments: ResourceDefinition = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  scope: "Namespaced",
  apiVersion: "apps/v1",
  hasStatusSubresource: true,
  isCustom: false,
  schema: { type: "object" },
};

/** The owners of the Deployments. */
export const shops: ResourceDefinition = {
  ...deployments,
  group: "example.com",
  kind: "Shop",
  plural: "shops",
  apiVersion: "example.com/v1",
  isCustom: true,
};
