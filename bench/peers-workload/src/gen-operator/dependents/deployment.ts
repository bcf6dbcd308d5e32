import type { DeploymentArguments, DeploymentInput } from "../../generated/gen-operator/types.js";
import { labels } from "../labels.js";

/** Returns the Deployment that serves the page. */
export function desired({ primary }: DeploymentArguments): DeploymentInput {
  const { name } = primary.metadata;
  const app = { app: name };
  return {
    metadata: { name, labels },
    spec: {
      replicas: primary.spec.replicas,
      selector: { matchLabels: app },
      template: {
        metadata: { labels: app },
        spec: {
          containers: [
            {
              name: "web",
              image: "nginx:1.29",
              ports: [{ containerPort: 80 }],
              resources: { requests: { cpu: "10m", memory: "16Mi" } },
              volumeMounts: [{ name: "html", mountPath: "/usr/share/nginx/html" }],
            },
          ],
          volumes: [{ name: "html", configMap: { name } }],
        },
      },
    },
  };
}
