import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";

/** What is watched. */
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

/** What the Deployments belong to. */
export const shops: ResourceDefinition = {
  ...deployments,
  group: "example.com",
  kind: "Shop",
  plural: "shops",
  apiVersion: "example.com/v1",
  isCustom: true,
};
