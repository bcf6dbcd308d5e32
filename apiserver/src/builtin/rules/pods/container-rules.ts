// The containers of a Pod and of pod templates.
import {
  duplicateError,
  invalidError,
  notFoundError,
  requiredError,
  type FieldError,
} from "../../../errors/field-error.js";
import { memberOf, objectAt, type JsonObject, type JsonValue } from "../../../json.js";
import { objectsAt } from "../../read-path.js";
import { checkLabelName, checkOneOf, checkPort, checkRequired, portNameProblems } from "../field-rules.js";
import { checkVariable, checkVariables } from "./env-rules.js";
import { checkResources } from "./resource-rules.js";
import { checkDevices, checkEphemeralFields } from "./pod-fields.js";
import { checkLife, checkNoLife, checkRestartPolicy } from "./probe-rules.js";

/** Checks the containers of a pod spec at `path`, which mount `volumes`. */
export function checkContainers(path: string, spec: JsonObject, volumes: JsonObject[]): FieldError[] {
  const regular = objectsAt(spec, "containers");
  const initial = objectsAt(spec, "initContainers");
  const names = new Set<JsonValue | undefined>();
  const check = (at: string, container: JsonObject, ofKind: FieldError[]): FieldError[] => {
    const name = memberOf(container, "name");
    const isTaken = name !== undefined && name !== "" && names.has(name);
    names.add(name);
    return [
      ...checkLabelName(`${at}.name`, name),
      ...(isTaken ? [duplicateError(`${at}.name`, name)] : []),
      ...checkContainer(at, container, volumes),
      ...checkRestartPolicy(at, container),
      ...ofKind,
    ];
  };
  return [
    ...(regular.length === 0 ? [requiredError(`${path}.containers`)] : []),
    ...regular.flatMap((container, index) => {
      const at = `${path}.containers[${index}]`;
      return check(at, container, checkLife(at, container, spec));
    }),
    // Containers that run at the same time share the ports of their host.
    ...checkHostPorts(`${path}.containers`, regular),
    ...initial.flatMap((container, index) => {
      const at = `${path}.initContainers[${index}]`;
      const runsOn = memberOf(container, "restartPolicy") === "Always";
      return [
        ...check(at, container, runsOn ? checkLife(at, container, spec) : checkNoLife(at, container)),
        // Kubernetes looks at each of them alone, and names the first.
        ...checkHostPorts(`${path}.initContainers`, [container]),
      ];
    }),
    ...objectsAt(spec, "ephemeralContainers").flatMap((container, index) => {
      const at = `${path}.ephemeralContainers[${index}]`;
      return check(at, container, checkEphemeralFields(at, container));
    }),
  ];
}

function checkContainer(path: string, container: JsonObject, volumes: JsonObject[]): FieldError[] {
  return [
    ...checkRequired(`${path}.image`, memberOf(container, "image")),
    ...checkOneOf(`${path}.terminationMessagePolicy`, memberOf(container, "terminationMessagePolicy"), [
      "File",
      "FallbackToLogsOnError",
    ]),
    ...checkPorts(`${path}.ports`, objectsAt(container, "ports")),
    ...objectsAt(container, "env").flatMap((variable, place) => checkVariable(`${path}.env[${place}]`, variable)),
    ...objectsAt(container, "envFrom").flatMap((source) => checkVariables(`${path}.envFrom`, source)),
    ...objectsAt(container, "volumeMounts").flatMap((mount, place) =>
      checkMount(`${path}.volumeMounts[${place}]`, mount, { volumes, container }),
    ),
    ...checkDevices(path, container, volumes),
    ...checkOneOf(`${path}.imagePullPolicy`, memberOf(container, "imagePullPolicy"), [
      "Always",
      "IfNotPresent",
      "Never",
    ]),
    ...checkResources(`${path}.resources`, objectAt(container, "resources")),
  ];
}

function checkPorts(path: string, ports: JsonObject[]): FieldError[] {
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const at = `${path}[${index}]`;
    const name = String(memberOf(port, "name") ?? "");
    const problems =
      name === "" ? [] : portNameProblems(name).map((detail) => invalidError(`${at}.name`, name, detail));
    const isTaken = names.has(name);
    if (name !== "" && problems.length === 0) names.add(name);
    const number = memberOf(port, "containerPort");
    const hostPort = memberOf(port, "hostPort") ?? 0;
    return [
      ...problems,
      ...(isTaken ? [duplicateError(`${at}.name`, name)] : []),
      ...(number === undefined || number === 0
        ? [requiredError(`${at}.containerPort`)]
        : checkPort(`${at}.containerPort`, number)),
      ...(hostPort === 0 ? [] : checkPort(`${at}.hostPort`, hostPort)),
      ...checkOneOf(`${at}.protocol`, memberOf(port, "protocol"), ["SCTP", "TCP", "UDP"]),
    ];
  });
}

function checkHostPorts(path: string, containers: JsonObject[]): FieldError[] {
  const taken = new Set<string>();
  return containers.flatMap((container, index) =>
    objectsAt(container, "ports").flatMap((port, place) => {
      const hostPort = memberOf(port, "hostPort") ?? 0;
      if (hostPort === 0) return [];
      const [protocol, ip] = ["protocol", "hostIP"].map((key) => String(memberOf(port, key) ?? ""));
      const key = `${protocol}/${ip}/${String(hostPort)}`;
      if (taken.has(key)) return [duplicateError(`${path}[${index}].ports[${place}].hostPort`, key)];
      taken.add(key);
      return [];
    }),
  );
}

/** Demands that Pods in the network of their host use its ports as their own. */
export function checkHostNetwork(path: string, spec: JsonObject): FieldError[] {
  if (memberOf(spec, "hostNetwork") !== true) return [];
  return objectsAt(spec, "containers").flatMap((container, index) =>
    objectsAt(container, "ports").flatMap((port, place) => {
      const hostPort = memberOf(port, "hostPort") ?? 0;
      // In a template none is given; a Pod gets it as a default.
      if (hostPort === 0 || hostPort === memberOf(port, "containerPort")) return [];
      const detail = "must match `containerPort` when `hostNetwork` is true";
      return [invalidError(`${path}.containers[${index}].ports[${place}].hostPort`, hostPort, detail)];
    }),
  );
}

function checkMount(
  path: string,
  mount: JsonObject,
  { volumes, container }: { volumes: JsonObject[]; container: JsonObject },
): FieldError[] {
  const name = memberOf(mount, "name") ?? "";
  const isKnown = volumes.some((volume) => memberOf(volume, "name") === name);
  const place = memberOf(mount, "mountPath");
  const devices = objectsAt(container, "volumeDevices");
  return [
    ...checkRequired(`${path}.name`, name),
    ...(isKnown ? [] : [notFoundError(`${path}.name`, name)]),
    ...checkRequired(`${path}.mountPath`, memberOf(mount, "mountPath")),
    ...(place !== undefined && devices.some((device) => memberOf(device, "devicePath") === place)
      ? [invalidError(`${path}.mountPath`, place, "must not already exist as a path in volumeDevices")]
      : []),
    ...(devices.some((device) => memberOf(device, "name") === name)
      ? [invalidError(`${path}.name`, name, "must not already exist in volumeDevices")]
      : []),
  ];
}
