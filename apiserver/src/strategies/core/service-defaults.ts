import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  clone,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  stringAt,
} from "../../json.js";
import { at, objectsAt } from "../../builtin/read-path.js";
import type { DefaultingContext } from "../defaults.js";

const DEFAULT_AFFINITY_SECONDS = 10_800;

/** Sets what depends on the type of a Service: policies, addresses, ports of nodes. */
export function defaultService(service: JsonObject, context: DefaultingContext): void {
  const spec = objectAt(service, "spec");
  if (spec === undefined) return;
  const type = (spec["type"] ??= "ClusterIP");
  for (const port of (arrayAt(spec, "ports") ?? []).filter(isObject)) defaultTargetPort(port);
  if (spec["sessionAffinity"] === "None") delete spec["sessionAffinityConfig"];
  const hasTimeout = at(spec, "sessionAffinityConfig.clientIP.timeoutSeconds") !== undefined;
  if (spec["sessionAffinity"] === "ClientIP" && !hasTimeout)
    spec["sessionAffinityConfig"] = { clientIP: { timeoutSeconds: DEFAULT_AFFINITY_SECONDS } };
  // What was allocated is no field of the writer.
  const isFinal = context.allocateClusterIP !== undefined;
  const old = objectAt(context.old, "spec");
  if (isFinal) pairAddresses(spec, old);
  if (isFinal && old !== undefined) {
    dropUnneeded(spec, old);
    // The balancer is gone with the type.
    if (isLoadBalancer(old) && !isLoadBalancer(spec))
      service["status"] = { ...objectAt(service, "status"), loadBalancer: {} };
  }
  if (type === "ExternalName") return;
  spec["internalTrafficPolicy"] ??= "Cluster";
  const isExternal = type === "NodePort" || type === "LoadBalancer";
  if (isReachedFromOutside(spec)) spec["externalTrafficPolicy"] ??= "Cluster";
  if (type === "LoadBalancer") {
    spec["allocateLoadBalancerNodePorts"] ??= true;
    for (const ingress of objectsAt(service, "status.loadBalancer.ingress")) defaultIpMode(ingress);
  }
  if (isFinal) keepAllocated(spec, old);
  context.checkAsked?.(spec);
  defaultClusterIp(spec, context);
  if (isExternal && spec["allocateLoadBalancerNodePorts"] !== false) allocateNodePorts(spec, context);
  if (hasHealthCheck(spec) && context.allocateNodePort !== undefined)
    spec["healthCheckNodePort"] ??= context.allocateNodePort();
}

/** Takes away what an ExternalName has no use for, as reading it from the store does. */
export function forgetInternalTraffic(service: JsonObject): void {
  const spec = objectAt(service, "spec");
  if (spec?.["type"] === "ExternalName") delete spec["internalTrafficPolicy"];
}

function defaultTargetPort(port: JsonObject): void {
  const number = memberOf(port, "port");
  const target = memberOf(port, "targetPort");
  if ((target === undefined || target === 0 || target === "") && number !== undefined) port["targetPort"] = number;
}

type Spec = JsonObject;
const isExternalName = (spec: Spec): boolean => spec["type"] === "ExternalName";
const isLoadBalancer = (spec: Spec): boolean => spec["type"] === "LoadBalancer";
const hasNodePorts = (spec: Spec): boolean =>
  spec["type"] === "NodePort" || (isLoadBalancer(spec) && spec["allocateLoadBalancerNodePorts"] !== false);
const mayHaveNodePorts = (spec: Spec): boolean => spec["type"] === "NodePort" || isLoadBalancer(spec);
const isReachedFromOutside = (spec: Spec): boolean =>
  mayHaveNodePorts(spec) || (!isExternalName(spec) && (arrayAt(spec, "externalIPs") ?? []).length > 0);
const hasHealthCheck = (spec: Spec): boolean => isLoadBalancer(spec) && spec["externalTrafficPolicy"] === "Local";

// Which fields a Service needs only as long as this holds.
const NEEDS: [needs: (spec: Spec) => boolean, fields: string[]][] = [
  [(spec) => !isExternalName(spec), ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]],
  [hasHealthCheck, ["healthCheckNodePort"]],
  [isLoadBalancer, ["allocateLoadBalancerNodePorts", "loadBalancerClass"]],
  [isReachedFromOutside, ["externalTrafficPolicy"]],
];

// Who writes the one address and leaves the list as it is, or out, means both.
function pairAddresses(spec: Spec, old: Spec | undefined): void {
  const [now, before] = [stringAt(spec, "clusterIP") ?? "", stringAt(old, "clusterIP") ?? ""];
  if (old === undefined) {
    if (now !== "") spec["clusterIPs"] ??= [now];
    return;
  }
  if (now === before) {
    if (arrayAt(old, "clusterIPs") !== undefined) spec["clusterIPs"] ??= clone(arrayAt(old, "clusterIPs") ?? []);
  } else if (spec["clusterIPs"] === undefined || deepEqual(spec["clusterIPs"], old["clusterIPs"] ?? null)) {
    if (now === "") delete spec["clusterIPs"];
    else spec["clusterIPs"] = [now];
  }
}

/** Takes away what the type before needed, the new one does not, and the update says nothing about. */
function dropUnneeded(spec: Spec, old: Spec): void {
  for (const [needs, fields] of NEEDS) {
    if (!needs(old) || needs(spec)) continue;
    const isSame = (field: string) => deepEqual(spec[field] ?? null, old[field] ?? null);
    for (const field of fields) if (field !== "clusterIP" && isSame(field)) delete spec[field];
    // An address goes with the list that says the same.
    if (fields.includes("clusterIP") && spec["clusterIPs"] === undefined && isSame("clusterIP"))
      delete spec["clusterIP"];
  }
  if (!mayHaveNodePorts(old) || mayHaveNodePorts(spec)) return;
  const before = objectsAt(old, "ports").map(({ nodePort }) => nodePort ?? 0);
  const ports = objectsAt(spec, "ports");
  if (ports.every(({ nodePort }) => (nodePort ?? 0) === 0 || before.includes(nodePort ?? 0)))
    for (const port of ports) delete port["nodePort"];
}

// An update that leaves out what was allocated keeps it, as long as its type still needs it.
function keepAllocated(spec: JsonObject, old: JsonObject | undefined): void {
  if (old === undefined || old["type"] === "ExternalName") return;
  for (const key of ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"]) {
    const value = memberOf(old, key);
    const isNeeded = key !== "healthCheckNodePort" || (hasHealthCheck(old) && hasHealthCheck(spec));
    if (value !== undefined && isNeeded && memberOf(spec, key) === undefined) spec[key] = clone(value);
  }
  // Who has one family only leaves the other.
  const families = arrayAt(spec, "ipFamilies") ?? [];
  if (spec["ipFamilyPolicy"] === "SingleStack" && families.length > 1 && deepEqual(families, old["ipFamilies"] ?? null))
    spec["ipFamilies"] = families.slice(0, 1);
  if (!hasNodePorts(old) || !hasNodePorts(spec)) return;
  const before = new Map(objectsAt(old, "ports").map((port) => [stringAt(port, "name"), memberOf(port, "nodePort")]));
  const ports = objectsAt(spec, "ports");
  const taken = new Set(ports.map((port) => memberOf(port, "nodePort")));
  for (const port of ports) {
    const nodePort = before.get(stringAt(port, "name"));
    if (nodePort !== undefined && !taken.has(nodePort)) port["nodePort"] ??= nodePort;
  }
}

function protocolOf(port: JsonObject): string {
  return stringAt(port, "protocol") ?? "TCP";
}

function defaultClusterIp(spec: JsonObject, context: DefaultingContext): void {
  if (context.allocateClusterIP === undefined) return;
  const given = stringAt(spec, "clusterIP") ?? "";
  const clusterIp = given === "" ? context.allocateClusterIP() : given;
  spec["clusterIP"] = clusterIp;
  spec["clusterIPs"] ??= [clusterIp];
  // A headless service without selector may have endpoints of either family.
  const isOfAny = clusterIp === "None" && objectAt(spec, "selector") === undefined;
  const policy = (spec["ipFamilyPolicy"] ??= isOfAny ? "RequireDualStack" : "SingleStack");
  const families = arrayAt(spec, "ipFamilies") ?? [clusterIp.includes(":") ? "IPv6" : "IPv4"];
  const isHalf = isOfAny && policy !== "SingleStack" && families.length === 1;
  spec["ipFamilies"] = isHalf ? [...families, families[0] === "IPv4" ? "IPv6" : "IPv4"] : families;
}

function allocateNodePorts(spec: JsonObject, { allocateNodePort, old }: DefaultingContext): void {
  if (allocateNodePort === undefined) return;
  // Ports of one number and different protocols have one port of the nodes.
  const byNumber = new Map<unknown, JsonValue>();
  const ports = (arrayAt(spec, "ports") ?? []).filter(isObject);
  for (const { port, nodePort } of ports)
    if (nodePort !== undefined && !byNumber.has(port)) byNumber.set(port, nodePort);
  // An update is checked before it gets ports of the nodes, so none of these may be what is wrong with it.
  const seen = new Set<string>();
  for (const port of ports) {
    const place = `${protocolOf(port)} ${String(port["port"])}`;
    const shared = old !== undefined && seen.has(place) ? undefined : byNumber.get(port["port"]);
    seen.add(place);
    const nodePort = (port["nodePort"] ??= shared ?? allocateNodePort());
    if (!byNumber.has(port["port"])) byNumber.set(port["port"], nodePort);
  }
}

// The address of a load balancer is that of a virtual IP.
function defaultIpMode(ingress: JsonObject): void {
  if (stringAt(ingress, "ip") !== undefined) ingress["ipMode"] ??= "VIP";
}
