import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  notFoundError,
  requiredError,
  tooManyError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import {
  checkLabelName,
  checkOneOf,
  checkPort,
  checkPortName,
  checkRequired,
  checkRequiredOneOf,
} from "../../validation/fields.js";
import { checkVariable, checkVariableSources } from "./env.js";
import { checkDevices, checkMounts } from "./mounts.js";
import { checkEphemeralFields } from "./pod-fields.js";
import { checkLife, checkNoLife } from "./probes.js";
import { checkResources } from "./resources.js";
import { checkContainerSecurity } from "./security-context.js";

/** Validates the containers of a Pod spec at `path`; `volumes` are those that can be mounted. */
export function checkContainers(path: string, spec: JsonObject, volumes: JsonObject[]): FieldError[] {
  const [regular, initial] = [objectsAt(spec, "containers"), objectsAt(spec, "initContainers")];
  const context = { spec, volumes };
  const names = new Set<string>();
  const takeName = (at: string, container: JsonObject): FieldError[] => {
    const name = textAt(container, "name");
    if (names.has(name)) return [duplicateError(`${at}.name`, name)];
    names.add(name);
    return [];
  };
  return [
    ...(regular.length === 0 ? [requiredError(`${path}.containers`)] : []),
    ...regular.flatMap((container, index) => {
      const at = `${path}.containers[${index}]`;
      return [
        ...checkContainer(at, container, context),
        ...takeName(at, container),
        ...checkLife(at, container, spec),
        ...checkRestarts(at, container),
      ];
    }),
    // Containers that run concurrently share the host ports.
    ...checkHostPorts(`${path}.containers`, regular),
    ...initial.flatMap((container, index) => {
      const at = `${path}.initContainers[${index}]`;
      const runsOn = memberOf(container, "restartPolicy") === "Always";
      const isNamed = textAt(container, "name") !== "" || names.has("");
      return [
        ...checkContainer(at, container, context),
        ...checkRestarts(at, container, { isFirst: true }),
        ...(isNamed ? takeName(at, container) : []),
        // As in kube-apiserver, each init container is checked on its own, and its error has index 0.
        ...checkHostPorts(`${path}.initContainers`, [container]),
        ...(runsOn
          ? checkLife(at, container, spec)
          : [...checkNoLife(at, container), ...checkNoRestart(at, container)]),
      ];
    }),
    ...checkEphemeral(path, spec, { context, takeName }),
  ];
}

function checkEphemeral(
  path: string,
  spec: JsonObject,
  { context, takeName }: { context: Context; takeName: (at: string, container: JsonObject) => FieldError[] },
): FieldError[] {
  const others = ["containers", "initContainers"].flatMap((list) => objectsAt(spec, list));
  const targets = others.map((container) => textAt(container, "name"));
  // As in kube-apiserver, another container without a name reserves the empty name.
  if (targets.includes("")) takeName("", {});
  return objectsAt(spec, "ephemeralContainers").flatMap((container, index) => {
    const at = `${path}.ephemeralContainers[${index}]`;
    const target = textAt(container, "targetContainerName");
    return [
      ...checkContainer(at, container, context),
      ...checkImage(at, container),
      ...takeName(at, container),
      ...(target === "" || targets.includes(target) ? [] : [notFoundError(`${at}.targetContainerName`, target)]),
      ...checkEphemeralFields(at, container),
    ];
  });
}

/** Validates that an image has no leading or trailing whitespace. This applies to Pods, but not to Pod templates. */
export function checkImage(path: string, container: JsonObject): FieldError[] {
  const image = textAt(container, "image");
  const detail = "must not have leading or trailing whitespace";
  return image === image.trim() ? [] : [invalidError(`${path}.image`, image, detail)];
}

/** The Pod spec of a container, and its volumes that can be mounted. */
interface Context {
  readonly spec: JsonObject;
  readonly volumes: JsonObject[];
}

function checkContainer(path: string, container: JsonObject, { spec, volumes }: Context): FieldError[] {
  return [
    ...checkLabelName(`${path}.name`, memberOf(container, "name")),
    ...checkRequired(`${path}.image`, memberOf(container, "image")),
    ...checkOneOf(`${path}.terminationMessagePolicy`, memberOf(container, "terminationMessagePolicy"), [
      "File",
      "FallbackToLogsOnError",
    ]),
    ...checkPorts(`${path}.ports`, objectsAt(container, "ports")),
    ...objectsAt(container, "env").flatMap((variable, place) => checkVariable(`${path}.env[${place}]`, variable)),
    ...checkVariableSources(`${path}.envFrom`, objectsAt(container, "envFrom")),
    ...checkMounts(`${path}.volumeMounts`, container, volumes),
    ...checkDevices(path, container, volumes),
    ...checkOneOf(`${path}.imagePullPolicy`, memberOf(container, "imagePullPolicy"), [
      "Always",
      "IfNotPresent",
      "Never",
    ]),
    ...checkResources(`${path}.resources`, objectAt(container, "resources"), spec),
    ...checkResizing(`${path}.resizePolicy`, objectsAt(container, "resizePolicy"), spec),
    ...checkContainerSecurity(path, container, spec),
  ];
}

function checkPorts(path: string, ports: JsonObject[]): FieldError[] {
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const at = `${path}[${index}]`;
    const name = String(memberOf(port, "name") ?? "");
    const problems = name === "" ? [] : checkPortName(`${at}.name`, name);
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

/** Validates that host ports equal container ports if hostNetwork is true. */
export function checkHostNetwork(path: string, spec: JsonObject): FieldError[] {
  if (memberOf(spec, "hostNetwork") !== true) return [];
  return objectsAt(spec, "containers").flatMap((container, index) =>
    objectsAt(container, "ports").flatMap((port, place) => {
      const hostPort = memberOf(port, "hostPort") ?? 0;
      // In a Pod, hostPort has been defaulted; in a template, it may be absent.
      if (hostPort === 0 || hostPort === memberOf(port, "containerPort")) return [];
      const detail = "must match `containerPort` when `hostNetwork` is true";
      return [invalidError(`${path}.containers[${index}].ports[${place}].hostPort`, hostPort, detail)];
    }),
  );
}

const MAX_RULES = 20;
const MAX_CODES = 255;

/** Validates restartPolicy and restartPolicyRules. The rules of an init container without a policy are not validated. */
function checkRestarts(path: string, container: JsonObject, { isFirst = false } = {}): FieldError[] {
  const [policy, rules] = [memberOf(container, "restartPolicy"), objectsAt(container, "restartPolicyRules")];
  const missing =
    policy === undefined && rules.length > 0
      ? [requiredError(`${path}.restartPolicy`, "must specify restartPolicy when restart rules are used")]
      : [];
  if (policy === undefined && isFirst) return missing;
  return [
    ...missing,
    ...checkOneOf(`${path}.restartPolicy`, policy, ["Always", "Never", "OnFailure"]),
    ...(rules.length > MAX_RULES ? [tooManyError(`${path}.restartPolicyRules`, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, index) => checkRule(`${path}.restartPolicyRules[${index}]`, rule)),
  ];
}

function checkRule(path: string, rule: JsonObject): FieldError[] {
  const [codes, field] = [objectAt(rule, "exitCodes"), `${path}.exitCodes`];
  const count = (arrayAt(codes, "values") ?? []).length;
  return [
    ...checkOneOf(`${path}.action`, textAt(rule, "action"), ["Restart", "RestartAllContainers"]),
    ...(codes === undefined
      ? [requiredError(field, "must be specified")]
      : checkOneOf(`${field}.operator`, textAt(codes, "operator"), ["In", "NotIn"])),
    ...(count > MAX_CODES ? [tooManyError(`${field}.values`, count, MAX_CODES)] : []),
  ];
}

/** Validates the resizePolicy of a container. */
function checkResizing(path: string, policies: JsonObject[], podSpec: JsonObject): FieldError[] {
  const names = policies.map((policy) => textAt(policy, "resourceName"));
  const isOver = memberOf(podSpec, "restartPolicy") === "Never";
  return policies.flatMap((policy, index) => {
    const [name, restart] = [names[index] ?? "", textAt(policy, "restartPolicy")];
    const detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
    return [
      ...(names.indexOf(name) < index ? [duplicateError(`${path}[${index}]`, name)] : []),
      ...checkRequiredOneOf(path, name, ["cpu", "memory"]),
      ...checkRequiredOneOf(path, restart, ["NotRequired", "RestartContainer"]),
      ...(isOver && restart !== "NotRequired" ? [invalidError(path, restart, detail)] : []),
    ];
  });
}

/** Validates that an init container that is not a sidecar has no resize policy RestartContainer. */
function checkNoRestart(path: string, container: JsonObject): FieldError[] {
  return objectsAt(container, "resizePolicy").flatMap((policy, index) =>
    memberOf(policy, "restartPolicy") === "RestartContainer"
      ? [
          invalidError(
            `${path}.resizePolicy[${index}].restartPolicy`,
            "RestartContainer",
            "must not be set to 'RestartContainer' for non-sidecar initContainers",
          ),
        ]
      : [],
  );
}
