import type { DeploymentInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export function desired(): DeploymentInput {
  return { metadata: { name: "x" }, spec: { template: { spec: { containers: [] } } } };
}
