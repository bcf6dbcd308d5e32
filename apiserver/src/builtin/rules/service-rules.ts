import {
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../errors/field-error.js";
import { deepEqual, arrayAt, memberOf, objectAt, type JsonObject, type JsonValue } from "../../json.js";
import { at, objectsAt, textAt } from "../read-path.js";
import { checkPublicAddress } from "./cluster/endpoint-rules.js";
import { checkCidr } from "./network-rules.js";
import { addressProblems } from "./name-syntax.js";
import {
  checkLabelName,
  checkLabels,
  checkOneOf,
  checkPort,
  checkQualifiedName,
  checkRequiredDomain,
  checkPortName,
} from "./field-rules.js";

/** Checks a Service, and on update that it keeps its address. */
export function checkService(service: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(service, "spec") ?? {};
  const type = memberOf(spec, "type");
  const ports = objectsAt(spec, "ports");
  const isExternal = type === "ExternalName";
  const needsPorts = !isExternal && memberOf(spec, "clusterIP") !== "None";
  // Kubernetes looks at the addresses and their families first, and says no more where these are wrong.
  const ofAddresses = isExternal
    ? []
    : [checkAddresses(spec, old), checkFamilies(spec)].find((errors) => errors.length > 0);
  if (ofAddresses !== undefined && ofAddresses.length > 0) return ofAddresses;
  return [
    ...(needsPorts && ports.length === 0 ? [requiredError("spec.ports")] : []),
    ...checkPorts(ports, { type }),
    ...checkLabels(objectAt(spec, "selector") ?? {}, "spec.selector"),
    ...checkOneOf("spec.sessionAffinity", memberOf(spec, "sessionAffinity"), ["ClientIP", "None"]),
    ...checkAffinity(spec),
    ...checkOneOf("spec.type", type, ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ...(isExternal ? checkExternal(spec) : []),
    ...(arrayAt(spec, "externalIPs") ?? []).flatMap((address, index) =>
      checkPublicAddress(`spec.externalIPs[${index}]`, String(address)),
    ),
    ...(memberOf(spec, "clusterIP") === "None" && (type === "NodePort" || type === "LoadBalancer")
      ? [invalidError("spec.clusterIPs[0]", "None", `may not be set to 'None' for ${type} services`)]
      : []),
    ...checkOfType(spec, type),
    ...checkOneOf("spec.internalTrafficPolicy", memberOf(spec, "internalTrafficPolicy"), ["Cluster", "Local"]),
    ...checkOneOf("spec.trafficDistribution", memberOf(spec, "trafficDistribution"), DISTRIBUTIONS),
    ...checkAddressKept(spec, objectAt(old, "spec")),
  ];
}

const DISTRIBUTIONS = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const OF_BALANCERS = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];

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
  const isForBalancer = "may only be used when `type` is 'LoadBalancer'";
  const isForCheck = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
  return [
    ...ranges.flatMap((range, index) => checkCidr(`spec.LoadBalancerSourceRanges[${index}]`, String(range).trim())),
    ...(type === "LoadBalancer" ? [] : ofBalancers.map((key) => forbiddenError(`spec.${key}`, isForBalancer))),
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
    ...(isChecked || healthPort === 0 ? [] : [invalidError("spec.healthCheckNodePort", healthPort, isForCheck)]),
  ];
}

// This cluster has addresses of IPv4 alone. A Service without an address and without Pods has none to be given.
function checkFamilies(spec: JsonObject): FieldError[] {
  if (memberOf(spec, "clusterIP") === "None" && objectAt(spec, "selector") === undefined) return [];
  const policy = memberOf(spec, "ipFamilyPolicy");
  if ((arrayAt(spec, "ipFamilies") ?? []).length > 1 && (policy ?? "SingleStack") === "SingleStack") {
    const detail = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
    return [invalidError("spec.ipFamilyPolicy", "SingleStack", detail)];
  }
  const other = (arrayAt(spec, "ipFamilies") ?? []).flatMap((family, index) =>
    family === "IPv4" ? [] : [invalidError(`spec.ipFamilies[${index}]`, family, "not configured on this cluster")],
  );
  if (other.length > 0) return other;
  if (policy !== "RequireDualStack") return [];
  return [invalidError("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")];
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

const FAMILIES = ["IPv4", "IPv6"];

function checkAddresses(spec: JsonObject, old: JsonObject | undefined): FieldError[] {
  const addresses = arrayAt(spec, "clusterIPs") ?? [];
  const families = arrayAt(spec, "ipFamilies") ?? [];
  return [
    ...(old === undefined ? checkFirstAddress(memberOf(spec, "clusterIP") ?? "", addresses) : []),
    ...families.flatMap((family, index) => [
      ...(FAMILIES.includes(String(family)) ? [] : [notSupportedError(`spec.ipFamilies[${index}]`, family, FAMILIES)]),
      ...(families.indexOf(family) < index ? [duplicateError(`spec.ipFamilies[${index}]`, family)] : []),
    ]),
    ...(addresses[0] === "None" && addresses.length > 1
      ? [invalidError("spec.clusterIPs", [...addresses], "'None' must be the first and only value")]
      : []),
    ...addresses.flatMap((address, index) =>
      address === "None" && index === 0
        ? []
        : addressProblems(String(address)).map((detail) => invalidError(`spec.clusterIPs[${index}]`, address, detail)),
    ),
    ...checkPairs(addresses.map(String)),
  ];
}

// Each family has one address.
function checkPairs(addresses: string[]): FieldError[] {
  const field = "spec.clusterIPs";
  const tooMany = addresses.length > 2 ? [invalidError(field, addresses, "may only hold up to 2 values")] : [];
  const isReadable = addresses.every((address, index) =>
    address === "None" ? index === 0 && addresses.length === 1 : addressProblems(address).length === 0,
  );
  if (!isReadable || addresses[0] === "None") return tooMany;
  const isTwice = new Set(addresses.map((address) => address.includes(":"))).size < addresses.length;
  return [
    ...tooMany,
    ...(isTwice ? [invalidError(field, addresses, "may specify no more than one IP for each IP family")] : []),
  ];
}

function checkFirstAddress(address: JsonValue, addresses: readonly JsonValue[]): FieldError[] {
  if (addresses.length === 0 || (address !== "" && addresses[0] === address)) return [];
  const detail =
    address === "" ? "must be empty when `clusterIP` is not specified" : "first value must match `clusterIP`";
  return [invalidError("spec.clusterIPs", [...addresses], detail)];
}

function checkAddressKept(spec: JsonObject, old: JsonObject | undefined): FieldError[] {
  const before = memberOf(old, "clusterIP");
  const now = memberOf(spec, "clusterIP");
  const isFree = before === undefined || old?.["type"] === "ExternalName" || spec["type"] === "ExternalName";
  if (isFree || deepEqual(before, now)) return [];
  return [invalidError("spec.clusterIPs[0]", [now ?? ""], "may not change once set")];
}
