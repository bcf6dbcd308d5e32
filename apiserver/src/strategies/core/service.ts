import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
} from "../../errors/field-error.js";
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
import { addressWarnings, cidrWarnings } from "../../validation/addresses.js";
import {
  checkCidr,
  checkLabelName,
  checkLabels,
  checkOneOf,
  checkPort,
  checkPortName,
  checkQualifiedName,
  checkRequiredDomain,
} from "../../validation/fields.js";
import { checkLoadBalancer, loadBalancerWarnings } from "../shared/load-balancers.js";
import type { DefaultingContext } from "../strategy.js";
import type { Strategy } from "../strategy.js";
import { checkPublicAddress } from "./endpoints.js";
import { checkAddressForms } from "./service-allocation.js";

export const serviceStrategy: Strategy = {
  createsOnUpdate: true,
  returnsDeletedObject: true,
  nameRule: "label",
  allocatesAddresses: true,
  defaults: defaultService,
  reread: forgetInternalTraffic,
  validate: checkService,
  validateStatus: checkServiceAddresses,
  warnings: serviceWarnings,
  statusWarnings: loadBalancerWarnings,
};

/** Validates a Service; its cluster IP is immutable. */
function checkService(service: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(service, "spec") ?? {};
  const type = memberOf(spec, "type");
  const ports = objectsAt(spec, "ports");
  const isExternal = type === "ExternalName";
  const needsPorts = !isExternal && memberOf(spec, "clusterIP") !== "None";
  return [
    ...(needsPorts && ports.length === 0 ? [requiredError("spec.ports")] : []),
    ...checkPorts(ports, { type }),
    ...checkLabels(objectAt(spec, "selector") ?? {}, "spec.selector"),
    ...checkOneOf("spec.sessionAffinity", memberOf(spec, "sessionAffinity"), ["ClientIP", "None"]),
    ...checkAffinity(spec),
    ...(isExternal ? [] : checkAddressForms(spec, { policy: memberOf(spec, "ipFamilyPolicy") ?? "SingleStack" })),
    ...checkOneOf("spec.type", type, ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ...(isExternal ? checkExternal(spec) : []),
    ...(arrayAt(spec, "externalIPs") ?? []).flatMap((address, index) =>
      checkPublicAddress(`spec.externalIPs[${index}]`, String(address)),
    ),
    ...(memberOf(spec, "clusterIP") === "None" && (type === "NodePort" || type === "LoadBalancer")
      ? [invalidError("spec.clusterIPs[0]", "None", `may not be set to 'None' for ${type} services`)]
      : []),
    ...checkOfType(spec, type),
    ...checkRangesInAnnotation(service, old),
    ...checkBalancerClass(spec),
    ...checkOneOf("spec.internalTrafficPolicy", memberOf(spec, "internalTrafficPolicy"), ["Cluster", "Local"]),
    ...checkOneOf("spec.trafficDistribution", memberOf(spec, "trafficDistribution"), DISTRIBUTIONS),
    ...checkHintsOnce(service),
    ...(old === undefined ? [] : checkServiceUpdate(spec, objectAt(old, "spec") ?? {})),
  ];
}

function checkHintsOnce(service: JsonObject): FieldError[] {
  const annotations = objectAt(objectAt(service, "metadata"), "annotations");
  const [mode, hints] = [TOPOLOGY_MODE, TOPOLOGY_HINTS].map((key) => memberOf(annotations, key));
  if (mode === undefined || hints === undefined || mode === hints) return [];
  const detail = `must match annotations[${TOPOLOGY_HINTS}] when both are specified`;
  return [invalidError(`metadata.annotations[${TOPOLOGY_MODE}]`, mode, detail)];
}

/** Annotation with the routing preference. */
const TOPOLOGY_MODE = "service.kubernetes.io/topology-mode";

/** Legacy name of the annotation. */
const TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints";

const DISTRIBUTIONS = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const FOR_BALANCERS = "may only be used when `type` is 'LoadBalancer'";
const OF_BALANCERS = ["allocateLoadBalancerNodePorts"];

// Validates fields that only some types of Services support.
function checkOfType(spec: JsonObject, type: JsonValue | undefined): FieldError[] {
  const policy = memberOf(spec, "externalTrafficPolicy");
  const isExternal = type === "LoadBalancer" || type === "NodePort" || (arrayAt(spec, "externalIPs") ?? []).length > 0;
  const isChecked = type === "LoadBalancer" && policy === "Local";
  const healthPort = memberOf(spec, "healthCheckNodePort") ?? 0;
  const ranges = arrayAt(spec, "loadBalancerSourceRanges") ?? [];
  const ofBalancers = [
    ...OF_BALANCERS.filter((key) => memberOf(spec, key) !== undefined),
    ...(ranges.length > 0 ? ["LoadBalancerSourceRanges"] : []),
  ];
  const isForCheck = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
  return [
    ...ranges.flatMap((range, index) => checkCidr(`spec.LoadBalancerSourceRanges[${index}]`, String(range).trim())),
    ...(type === "LoadBalancer" ? [] : ofBalancers.map((key) => forbiddenError(`spec.${key}`, FOR_BALANCERS))),
    ...(isExternal || (policy ?? "") === ""
      ? []
      : [
          invalidError(
            "spec.externalTrafficPolicy",
            policy ?? "",
            "may only be set for externally-accessible services",
          ),
        ]),
    ...(isExternal ? checkOneOf("spec.externalTrafficPolicy", policy, ["Cluster", "Local"]) : []),
    ...(isChecked && healthPort !== 0 ? checkPort("spec.healthCheckNodePort", healthPort) : []),
    ...(isChecked || healthPort === 0 ? [] : [invalidError("spec.healthCheckNodePort", healthPort, isForCheck)]),
  ];
}

const RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges";

// Validates the legacy annotation, which is only used if spec.loadBalancerSourceRanges is empty.
function checkRangesInAnnotation(service: JsonObject, old: JsonObject | undefined): FieldError[] {
  const [text, before] = [service, old ?? {}].map((one) =>
    memberOf(objectAt(objectAt(one, "metadata"), "annotations"), RANGES),
  );
  const spec = objectAt(service, "spec") ?? {};
  if (typeof text !== "string" || (arrayAt(spec, "loadBalancerSourceRanges") ?? []).length > 0) return [];
  const field = `metadata.annotations[${RANGES}]`;
  const ranges = text === before || text.trim() === "" ? [] : text.trim().split(",");
  return [
    ...(memberOf(spec, "type") === "LoadBalancer" ? [] : [forbiddenError(field, FOR_BALANCERS)]),
    ...ranges.flatMap((range) => checkCidr(field, range.trim())),
  ];
}

function checkExternal(spec: JsonObject): FieldError[] {
  const given = ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].filter((key) => memberOf(spec, key) !== undefined);
  return [
    ...given.map((key) => forbiddenError(`spec.${key}`, "may not be set for ExternalName services")),
    ...checkRequiredDomain("spec.externalName", textAt(spec, "externalName").replace(/\.$/, "")),
  ];
}

const MAX_AFFINITY_SECONDS = 86_400;

function checkAffinity(spec: JsonObject): FieldError[] {
  const path = "sessionAffinityConfig.clientIP.timeoutSeconds";
  const timeout = at(spec, path);
  if (memberOf(spec, "sessionAffinity") !== "ClientIP" || typeof timeout !== "number") return [];
  if (timeout > 0 && timeout <= MAX_AFFINITY_SECONDS) return [];
  return [invalidError(`spec.${path}`, timeout, `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`)];
}

function checkServiceStatus(service: JsonObject): FieldError[] {
  const ingress = objectsAt(service, "status.loadBalancer.ingress");
  if (ingress.length === 0 || memberOf(objectAt(service, "spec"), "type") === "LoadBalancer") return [];
  return [forbiddenError("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")];
}

function checkPorts(ports: JsonObject[], { type }: { type: JsonValue | undefined }): FieldError[] {
  const names = new Set<unknown>();
  const numbers = new Set<string>();
  const nodePorts = new Set<string>();
  return ports.flatMap((port, index) => {
    const path = `spec.ports[${index}]`;
    const [name, number, protocol] = ["name", "port", "protocol"].map((key) => memberOf(port, key));
    const isTaken = name !== undefined && names.has(name);
    names.add(name);
    const place = `${String(protocol)} ${String(number)}`;
    const isRepeated = numbers.has(place);
    numbers.add(place);
    const nodePort = memberOf(port, "nodePort") ?? 0;
    const onNodes = `${String(protocol)} ${String(nodePort)}`;
    const isTakenOnNodes = nodePort !== 0 && nodePorts.has(onNodes);
    nodePorts.add(onNodes);
    const target = memberOf(port, "targetPort");
    const appProtocol = memberOf(port, "appProtocol");
    const hasNodePort = type === "ClusterIP" && nodePort !== 0;
    return [
      ...(name === undefined && ports.length === 1 ? [] : checkLabelName(`${path}.name`, name)),
      ...(isTaken ? [duplicateError(`${path}.name`, name)] : []),
      ...checkPort(`${path}.port`, number ?? 0),
      ...checkOneOf(`${path}.protocol`, protocol, ["SCTP", "TCP", "UDP"]),
      ...(typeof target === "number" ? checkPort(`${path}.targetPort`, target) : []),
      ...(typeof target === "string" ? checkPortName(`${path}.targetPort`, target) : []),
      ...(typeof appProtocol === "string" ? checkQualifiedName(`${path}.appProtocol`, appProtocol) : []),
      ...(hasNodePort ? [forbiddenError(`${path}.nodePort`, "may not be used when `type` is 'ClusterIP'")] : []),
      ...(isTakenOnNodes ? [duplicateError(`${path}.nodePort`, nodePort)] : []),
      ...(isRepeated ? [duplicateError(path, goPort(port))] : []),
    ];
  });
}

// kube-apiserver prints the port as it compares it: without its name and target port.
function goPort(port: JsonObject): JsonObject {
  return {
    Name: "",
    Protocol: memberOf(port, "protocol") ?? "",
    AppProtocol: null,
    Port: memberOf(port, "port") ?? 0,
    TargetPort: 0,
    NodePort: 0,
  };
}

/** Validates immutable fields of a Service: cluster IPs, loadBalancerClass, and healthCheckNodePort. */
function checkServiceUpdate(spec: JsonObject, old: JsonObject): FieldError[] {
  return [
    ...checkAddressesKept(spec, old),
    ...checkBalancerClassKept(spec, old),
    // kube-apiserver validates it again on update.
    ...checkBalancerClass(spec),
    ...checkHealthPortKept(spec, old),
  ];
}

const isBalancer = (spec: JsonObject): boolean => memberOf(spec, "type") === "LoadBalancer";

/** Validates loadBalancerClass, which only type LoadBalancer supports. */
function checkBalancerClass(spec: JsonObject): FieldError[] {
  const [field, name] = ["spec.loadBalancerClass", memberOf(spec, "loadBalancerClass")];
  if (name === undefined) return [];
  if (isBalancer(spec)) return checkQualifiedName(field, String(name));
  return [forbiddenError(field, "may only be used when `type` is 'LoadBalancer'")];
}

function checkBalancerClassKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [spec, old].map((one) => memberOf(one, "loadBalancerClass") ?? null);
  if (!isBalancer(spec) || !isBalancer(old) || now === before) return [];
  return [invalidError("spec.loadBalancerClass", now ?? null, "may not change once set")];
}

function checkHealthPortKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const isChecked = (one: JsonObject) => isBalancer(one) && memberOf(one, "externalTrafficPolicy") === "Local";
  const port = "healthCheckNodePort";
  if (!isChecked(spec) || !isChecked(old) || memberOf(spec, port) === memberOf(old, port)) return [];
  return [forbiddenError(`spec.${port}`, "field is immutable")];
}

function checkAddressesKept(spec: JsonObject, old: JsonObject): FieldError[] {
  if ([spec, old].some((one) => memberOf(one, "type") === "ExternalName")) return [];
  const [now, before] = [spec, old].map((one) => arrayAt(one, "clusterIPs") ?? []) as [JsonValue[], JsonValue[]];
  const isChanged = (index: number) => now[index] !== before[index];
  const field = (index: number) => `spec.clusterIPs[${index}]`;
  if (before.length > 0 && now.length === 0) return [invalidError(field(0), [], "primary clusterIP can not be unset")];
  const compared = now.length === before.length ? [...before.keys()] : before.length > 0 ? [0] : [];
  return compared.filter(isChanged).map((index) => invalidError(field(index), [...now], "may not change once set"));
}

function checkServiceAddresses(service: JsonObject): FieldError[] {
  const forbidden = checkServiceStatus(service);
  return forbidden.length > 0 ? forbidden : [...checkLoadBalancer(service), ...checkModes(service)];
}

function checkModes(service: JsonObject): FieldError[] {
  return objectsAt(service, "status.loadBalancer.ingress").flatMap((ingress, index) => {
    const path = `status.loadBalancer.ingress[${index}].ipMode`;
    const mode = memberOf(ingress, "ipMode");
    const hasAddress = textAt(ingress, "ip") !== "";
    if (hasAddress && mode === undefined) return [requiredError(path, "must be specified when `ip` is set")];
    if (hasAddress) return checkOneOf(path, mode, ["Proxy", "VIP"]);
    return mode === undefined ? [] : [forbiddenError(path, "may not be specified when `ip` is not set")];
  });
}

const DEFAULT_AFFINITY_SECONDS = 10_800;

/** Sets the defaults that depend on the type of a Service: policies, cluster IPs, and node ports. */
function defaultService(service: JsonObject, context: DefaultingContext): void {
  const spec = objectAt(service, "spec");
  if (spec === undefined) return;
  const type = (spec["type"] ??= "ClusterIP");
  for (const port of (arrayAt(spec, "ports") ?? []).filter(isObject)) defaultTargetPort(port);
  if (spec["sessionAffinity"] === "None") delete spec["sessionAffinityConfig"];
  const hasTimeout = at(spec, "sessionAffinityConfig.clientIP.timeoutSeconds") !== undefined;
  if (spec["sessionAffinity"] === "ClientIP" && !hasTimeout)
    spec["sessionAffinityConfig"] = { clientIP: { timeoutSeconds: DEFAULT_AFFINITY_SECONDS } };
  // Allocated values must not become fields of the manager that writes.
  const isFinal = context.allocateClusterIP !== undefined;
  const old = objectAt(context.old, "spec");
  if (isFinal) pairAddresses(spec, old);
  if (isFinal && old !== undefined) {
    dropUnneeded(spec, old);
    // A Service that is no longer of type LoadBalancer loses its load balancer status.
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

/** Removes internalTrafficPolicy of an ExternalName Service, as decoding it from storage does. */
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

// Fields that a Service needs only while the condition is met.
const NEEDS: [needs: (spec: Spec) => boolean, fields: string[]][] = [
  [(spec) => !isExternalName(spec), ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]],
  [hasHealthCheck, ["healthCheckNodePort"]],
  [isLoadBalancer, ["allocateLoadBalancerNodePorts", "loadBalancerClass"]],
  [isReachedFromOutside, ["externalTrafficPolicy"]],
];

// If only clusterIP is set or changed, clusterIPs follows.
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

/** Removes fields that the old type needed and the new one does not, unless the update changes them. */
function dropUnneeded(spec: Spec, old: Spec): void {
  for (const [needs, fields] of NEEDS) {
    if (!needs(old) || needs(spec)) continue;
    const isSame = (field: string) => deepEqual(spec[field] ?? null, old[field] ?? null);
    for (const field of fields) if (field !== "clusterIP" && isSame(field)) delete spec[field];
    // clusterIP is removed together with clusterIPs.
    if (fields.includes("clusterIP") && spec["clusterIPs"] === undefined && isSame("clusterIP"))
      delete spec["clusterIP"];
  }
  if (!mayHaveNodePorts(old) || mayHaveNodePorts(spec)) return;
  const before = objectsAt(old, "ports").map(({ nodePort }) => nodePort ?? 0);
  const ports = objectsAt(spec, "ports");
  if (ports.every(({ nodePort }) => (nodePort ?? 0) === 0 || before.includes(nodePort ?? 0)))
    for (const port of ports) delete port["nodePort"];
}

// An update that omits allocated values keeps them while the type needs them.
function keepAllocated(spec: JsonObject, old: JsonObject | undefined): void {
  if (old === undefined || old["type"] === "ExternalName") return;
  for (const key of ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"]) {
    const value = memberOf(old, key);
    const isNeeded = key !== "healthCheckNodePort" || (hasHealthCheck(old) && hasHealthCheck(spec));
    if (value !== undefined && isNeeded && memberOf(spec, key) === undefined) spec[key] = clone(value);
  }
  // A change to SingleStack drops the second IP family.
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
  // A headless Service without selector can have endpoints of both families.
  const isOfAny = clusterIp === "None" && objectAt(spec, "selector") === undefined;
  const policy = (spec["ipFamilyPolicy"] ??= isOfAny ? "RequireDualStack" : "SingleStack");
  const families = arrayAt(spec, "ipFamilies") ?? [clusterIp.includes(":") ? "IPv6" : "IPv4"];
  const isHalf = isOfAny && policy !== "SingleStack" && families.length === 1;
  spec["ipFamilies"] = isHalf ? [...families, families[0] === "IPv4" ? "IPv6" : "IPv4"] : families;
}

function allocateNodePorts(spec: JsonObject, { allocateNodePort, old }: DefaultingContext): void {
  if (allocateNodePort === undefined) return;
  // Ports with the same number and different protocols share a node port.
  const byNumber = new Map<unknown, JsonValue>();
  const ports = (arrayAt(spec, "ports") ?? []).filter(isObject);
  for (const { port, nodePort } of ports)
    if (nodePort !== undefined && !byNumber.has(port)) byNumber.set(port, nodePort);
  // Updates are validated before node ports are allocated, so an allocation must not cause a duplicate.
  const seen = new Set<string>();
  for (const port of ports) {
    const place = `${protocolOf(port)} ${String(port["port"])}`;
    const shared = old !== undefined && seen.has(place) ? undefined : byNumber.get(port["port"]);
    seen.add(place);
    const nodePort = (port["nodePort"] ??= shared ?? allocateNodePort());
    if (!byNumber.has(port["port"])) byNumber.set(port["port"], nodePort);
  }
}

// ipMode defaults to VIP if there is an IP.
function defaultIpMode(ingress: JsonObject): void {
  if (stringAt(ingress, "ip") !== undefined) ingress["ipMode"] ??= "VIP";
}

/** Returns the warnings for a Service: ignored, deprecated, or ambiguous fields. */
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
