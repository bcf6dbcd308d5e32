import { arrayAt, memberOf, objectAt, type JsonObject } from "../../json.js";

/** Names what a Service says in vain, or should say otherwise. */
export function serviceWarnings(service: JsonObject): string[] {
  const spec = objectAt(service, "spec") ?? {};
  const isHeadless = memberOf(spec, "clusterIP") === "None";
  const hasAffinity = (memberOf(spec, "sessionAffinity") ?? "None") !== "None";
  const isExternalName = spec["type"] === "ExternalName";
  return [
    ...((arrayAt(spec, "externalIPs") ?? []).length > 0
      ? ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"]
      : []),
    ...(isHeadless && memberOf(spec, "loadBalancerIP") !== undefined
      ? ["spec.loadBalancerIP is ignored for headless services"]
      : []),
    ...(isHeadless && hasAffinity ? ["spec.SessionAffinity is ignored for headless services"] : []),
    ...(!isExternalName && memberOf(spec, "externalName") !== undefined
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : []),
  ];
}
