import type { ConfigMapArguments, ConfigMapInput } from "../../generated/gen-operator/types.js";
import { labels } from "../labels.js";

/** Returns the ConfigMap with the page. */
export function desired({ primary }: ConfigMapArguments): ConfigMapInput {
  return { metadata: { name: primary.metadata.name, labels }, data: { "index.html": primary.spec.html } };
}
