import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import { checkPublicAddress } from "./endpoints.js";
import {
  checkLabelName,
  checkLabels,
  checkOneOf,
  checkPort,
  checkPortName,
  checkQualifiedName,
  checkRequiredDomain,
} from "../../validation/fields.js";
import { checkCidr } from "../networking/ingress.js";
import { checkAddressForms } from "./service-addresses.js";

/** Checks a Service, and on update that it keeps its address. */
export function checkService(service: JsonObject, old: JsonObject | undefined): FieldError[] {
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

/** What the annotation is called that tells how near traffic stays. */
export const TOPOLOGY_MODE = "service.kubernetes.io/topology-mode";
/** What it was called before. */
export const TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints";
const DISTRIBUTIONS = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const FOR_BALANCERS = "may only be used when `type` is 'LoadBalancer'";
const OF_BALANCERS = ["allocateLoadBalancerNodePorts"];

// What only some types of Services have.
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

// Once the ranges of clients of a load balancer were told here, which counts only where there are no others.
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

/** Checks the status of a Service. */
export function checkServiceStatus(service: JsonObject): FieldError[] {
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

// Kubernetes prints the port as it compares it: without its name and target.
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

// What of a Service may change.

/** Demands that a Service keeps its addresses, the class of its load balancer and the port that tells its health. */
function checkServiceUpdate(spec: JsonObject, old: JsonObject): FieldError[] {
  return [
    ...checkAddressesKept(spec, old),
    ...checkBalancerClassKept(spec, old),
    // Kubernetes looks at it once more in an update.
    ...checkBalancerClass(spec),
    ...checkHealthPortKept(spec, old),
  ];
}

const isBalancer = (spec: JsonObject): boolean => memberOf(spec, "type") === "LoadBalancer";

/** Checks the class of a load balancer, which nothing else has. */
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
