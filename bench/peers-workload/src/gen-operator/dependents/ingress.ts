import type { IngressArguments, IngressInput } from "../../generated/gen-operator/types.js";
import { labels } from "../labels.js";

/** Returns the Ingress for the host of the page. */
export function desired({ primary }: IngressArguments): IngressInput {
  const { name } = primary.metadata;
  const backend = { service: { name, port: { number: 80 } } };
  return {
    metadata: { name, labels },
    spec: { rules: [{ host: primary.spec.host, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }] },
  };
}
