import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { addressWarnings, cidrWarnings } from "../../validation/addresses.js";
import { TOPOLOGY_HINTS, TOPOLOGY_MODE } from "./service.js";

/** Names what a Service says in vain, or should say otherwise. */
export function serviceWarnings(service: JsonObject): string[] {
  const spec = objectAt(service, "spec") ?? {};
  const type = memberOf(spec, "type");
  const isExternalName = type === "ExternalName";
  const address = memberOf(spec, "clusterIP") ?? "";
  const isHeadless = type === "ClusterIP" && address === "None";
  const externals = arrayAt(spec, "externalIPs") ?? [];
  const balancer = memberOf(spec, "loadBalancerIP") ?? "";
  const hasHints = memberOf(objectAt(objectAt(service, "metadata"), "annotations"), TOPOLOGY_HINTS) !== undefined;
  const told: [isSo: boolean, warnings: string | string[]][] = [
    [hasHints, `annotation ${TOPOLOGY_HINTS} is deprecated, please use ${TOPOLOGY_MODE} instead`],
    [!isExternalName && address !== "None", listed(spec, "clusterIPs", addressWarnings)],
    [isHeadless && balancer !== "", "spec.loadBalancerIP is ignored for headless services"],
    [isHeadless && externals.length > 0, "spec.externalIPs is ignored for headless services"],
    [
      isHeadless && (memberOf(spec, "sessionAffinity") ?? "None") !== "None",
      "spec.SessionAffinity is ignored for headless services",
    ],
    [true, listed(spec, "externalIPs", addressWarnings)],
    [
      externals.length > 0 && !isHeadless && !isExternalName,
      "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    ],
    [balancer !== "", addressWarnings("spec.loadBalancerIP", String(balancer))],
    [true, listed(spec, "loadBalancerSourceRanges", cidrWarnings)],
    [isExternalName && externals.length > 0, 'spec.externalIPs is ignored when spec.type is "ExternalName"'],
    [
      !isExternalName && (memberOf(spec, "externalName") ?? "") !== "",
      'spec.externalName is ignored when spec.type is not "ExternalName"',
    ],
    [
      memberOf(spec, "trafficDistribution") === "PreferClose",
      'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
    ],
  ];
  return told.flatMap(([isSo, warnings]) => (isSo ? warnings : []));
}

function listed(spec: JsonObject, key: string, warn: (path: string, text: string) => string[]): string[] {
  return (arrayAt(spec, key) ?? []).flatMap((text, index) => warn(`spec.${key}[${index}]`, String(text)));
}
