import { arrayAt, memberOf, objectAt, type JsonObject } from "../../json.js";

/** Names what a Service says in vain, or should say otherwise. */
export function serviceWarnings(service: JsonObject): string[] {
  const spec = objectAt(service, "spec") ?? {};
  const hasAffinity = (memberOf(spec, "sessionAffinity") ?? "None") !== "None";
  const isExternalName = spec["type"] === "ExternalName";
  // One without an address of its own has no list of them either.
  const isHeadless = !isExternalName && memberOf(spec, "clusterIP") === "None";
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
