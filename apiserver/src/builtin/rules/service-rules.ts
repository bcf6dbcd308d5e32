import {
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
  type FieldError,
} from "../../errors/field-error.js";
import { deepEqual, arrayAt, memberOf, objectAt, type JsonObject } from "../../json.js";
import { objectsAt } from "../read-path.js";
import { IP, IP_RULE } from "./name-syntax.js";
import { checkLabelName, checkOneOf, checkPort, checkRequired, portNameProblems } from "./field-rules.js";

/** Checks a Service, and on update that it keeps its address. */
export function checkService(service: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(service, "spec") ?? {};
  const type = memberOf(spec, "type");
  const ports = objectsAt(spec, "ports");
  const isExternal = type === "ExternalName";
  const needsPorts = !isExternal && memberOf(spec, "clusterIP") !== "None";
  return [
    ...(needsPorts && ports.length === 0 ? [requiredError("spec.ports")] : []),
    ...checkPorts(ports),
    ...checkOneOf("spec.sessionAffinity", memberOf(spec, "sessionAffinity"), ["ClientIP", "None"]),
    ...checkOneOf("spec.type", type, ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ...(isExternal ? checkExternal(spec) : checkAddresses(spec)),
    ...(arrayAt(spec, "externalIPs") ?? []).flatMap((address, index) =>
      IP.test(String(address)) ? [] : [invalidError(`spec.externalIPs[${index}]`, address, IP_RULE)],
    ),
    ...(memberOf(spec, "clusterIP") === "None" && (type === "NodePort" || type === "LoadBalancer")
      ? [invalidError("spec.clusterIPs[0]", "None", `may not be set to 'None' for ${type} services`)]
      : []),
    ...checkAddressKept(spec, objectAt(old, "spec")),
  ];
}

function checkExternal(spec: JsonObject): FieldError[] {
  const given = ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].filter((key) => memberOf(spec, key) !== undefined);
  return [
    ...given.map((key) => forbiddenError(`spec.${key}`, "may not be set for ExternalName services")),
    ...checkRequired("spec.externalName", memberOf(spec, "externalName")),
  ];
}

/** Checks the status of a Service. */
export function checkServiceStatus(service: JsonObject): FieldError[] {
  const ingress = objectsAt(service, "status.loadBalancer.ingress");
  if (ingress.length === 0 || memberOf(objectAt(service, "spec"), "type") === "LoadBalancer") return [];
  return [forbiddenError("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")];
}

function checkPorts(ports: JsonObject[]): FieldError[] {
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
    return [
      ...(name === undefined && ports.length === 1 ? [] : isTaken ? [] : checkLabelName(`${path}.name`, name)),
      ...(isTaken ? [duplicateError(`${path}.name`, name)] : []),
      ...checkPort(`${path}.port`, number ?? 0),
      ...checkOneOf(`${path}.protocol`, protocol, ["SCTP", "TCP", "UDP"]),
      ...(typeof target === "number" ? checkPort(`${path}.targetPort`, target) : []),
      ...(typeof target === "string"
        ? portNameProblems(target).map((detail) => invalidError(`${path}.targetPort`, target, detail))
        : []),
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

function checkAddresses(spec: JsonObject): FieldError[] {
  return (arrayAt(spec, "clusterIPs") ?? []).flatMap((address, index) =>
    address === "None" || IP.test(String(address)) ? [] : [invalidError(`spec.clusterIPs[${index}]`, address, IP_RULE)],
  );
}

function checkAddressKept(spec: JsonObject, old: JsonObject | undefined): FieldError[] {
  const before = memberOf(old, "clusterIP");
  const now = memberOf(spec, "clusterIP");
  const isFree = before === undefined || old?.["type"] === "ExternalName" || spec["type"] === "ExternalName";
  if (isFree || deepEqual(before, now)) return [];
  return [invalidError("spec.clusterIPs[0]", [now ?? ""], "may not change once set")];
}
