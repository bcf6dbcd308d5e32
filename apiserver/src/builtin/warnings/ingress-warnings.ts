import { memberOf, objectAt, type JsonObject } from "../../json.js";

const CLASS = "kubernetes.io/ingress.class";

/** Names what a new Ingress should say otherwise. */
export function ingressWarnings(ingress: JsonObject, old: JsonObject | undefined): string[] {
  const annotations = objectAt(objectAt(ingress, "metadata"), "annotations");
  if (old !== undefined || memberOf(annotations, CLASS) === undefined) return [];
  return [`annotation "${CLASS}" is deprecated, please use 'spec.ingressClassName' instead`];
}
