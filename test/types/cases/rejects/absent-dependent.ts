import type {
  DeploymentArguments,
  DeploymentInput,
} from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export function desired({ secondary }: DeploymentArguments): DeploymentInput {
  return { metadata: { name: secondary.service.metadata.name } };
}
