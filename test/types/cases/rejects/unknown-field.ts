import type {
  DeploymentArguments,
  DeploymentInput,
} from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export function desired({ primary }: DeploymentArguments): DeploymentInput {
  const labels = { app: primary.metadata.name };
  return {
    metadata: { name: primary.metadata.name },
    spec: {
      replica: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [] } },
    },
  };
}
