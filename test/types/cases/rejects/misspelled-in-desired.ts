import type {
  DeploymentDesired,
  DeploymentInput,
} from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export const desired: DeploymentDesired = ({ primary }): DeploymentInput => ({
  metadata: { name: primary.metadata.name },
  spec: {
    selector: {},
    template: { spec: { containers: [{ name: "main", imag: "nginx" }] } },
  },
});
