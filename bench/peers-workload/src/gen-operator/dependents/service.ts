import type { ServiceArguments, ServiceInput } from "../../generated/gen-operator/types.js";
import { labels } from "../labels.js";

/** Returns the Service in front of the Deployment. */
export function desired({ primary }: ServiceArguments): ServiceInput {
  const { name } = primary.metadata;
  return { metadata: { name, labels }, spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 80 }] } };
}
