// What Kubernetes 1.36 warns of in Pods and in the templates of workloads.
import { quote } from "../../errors/quote.js";
import { arrayAt, deepEqual, isObject, memberOf, objectAt, stringAt, type JsonObject } from "../../json.js";
import { at, objectsAt } from "../read-path.js";
import { podTemplatePathOf } from "../type-facts.js";

interface Renamed {
  since: string;
  to: string;
}

const beta = (name: string): Renamed => ({ since: "v1.14", to: `kubernetes.io/${name}` });
const zone = (name: string): Renamed => ({ since: "v1.17", to: `topology.kubernetes.io/${name}` });

// In the order in which they are told.
const NODE_LABELS: Record<string, Renamed> = {
  "failure-domain.beta.kubernetes.io/zone": zone("zone"),
  "failure-domain.beta.kubernetes.io/region": zone("region"),
  "beta.kubernetes.io/instance-type": { since: "v1.17", to: "node.kubernetes.io/instance-type" },
  "beta.kubernetes.io/os": beta("os"),
  "beta.kubernetes.io/arch": beta("arch"),
};
const PROFILE = "container.apparmor.security.beta.kubernetes.io/";
const CRITICAL_POD = "scheduler.alpha.kubernetes.io/critical-pod";

/** Names what is wrong, or no longer right, in a Pod or template that is new. */
export function podWarnings(
  type: { plural: string; group: string },
  object: JsonObject,
  old: JsonObject | undefined,
): string[] {
  if (type.plural === "pods" && type.group === "")
    return old === undefined ? [...profileWarnings(object), ...warningsOf("", object)] : [];
  const path = podTemplatePathOf(type);
  if (path === undefined) return [];
  const template = at(object, path);
  if (!isObject(template)) return [];
  // A ReplicaSet tells it with every change, the others with one of their template.
  const isSame = (before: JsonObject) =>
    type.plural === "replicasets"
      ? deepEqual(objectAt(before, "spec") ?? {}, objectAt(object, "spec") ?? {})
      : deepEqual(at(before, path) ?? {}, template);
  if (old !== undefined && isSame(old)) return [];
  return warningsOf(`${path}.`, template);
}

function warningsOf(path: string, pod: JsonObject): string[] {
  const spec = objectAt(pod, "spec") ?? {};
  const at = `${path}spec`;
  return [
    ...nodeLabelWarnings(at, spec),
    ...annotationWarnings(path, pod),
    ...hostAliasWarnings(at, spec),
    ...emptySecretWarnings(at, spec),
    ...["initContainers", "containers"].flatMap((list) =>
      objectsAt(spec, list).flatMap((container, index) => containerWarnings(`${at}.${list}[${index}]`, container)),
    ),
    ...portWarnings(at, spec),
    ...graceWarnings(at, spec),
  ];
}

function graceWarnings(at: string, spec: JsonObject): string[] {
  const seconds = memberOf(spec, "terminationGracePeriodSeconds");
  if (typeof seconds !== "number" || seconds >= 0) return [];
  return [`${at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`];
}

function nodeLabelWarnings(at: string, spec: JsonObject): string[] {
  const selector = objectAt(spec, "nodeSelector");
  return Object.entries(NODE_LABELS)
    .filter(([label]) => memberOf(selector, label) !== undefined)
    .map(
      ([label, { since, to }]) => `${at}.nodeSelector[${label}]: deprecated since ${since}; use ${quote(to)} instead`,
    );
}

function annotationWarnings(path: string, pod: JsonObject): string[] {
  const annotations = objectAt(objectAt(pod, "metadata"), "annotations");
  if (memberOf(annotations, CRITICAL_POD) === undefined) return [];
  const advice = `non-functional in v1.16+; use the "priorityClassName" field instead`;
  return [`${path}metadata.annotations[${CRITICAL_POD}]: ${advice}`];
}

// Of Pods alone, not of templates.
function profileWarnings(pod: JsonObject): string[] {
  const annotations = objectAt(objectAt(pod, "metadata"), "annotations") ?? {};
  return Object.keys(annotations)
    .filter((key) => key.startsWith(PROFILE))
    .sort()
    .map((key) => `metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`);
}

function hostAliasWarnings(at: string, spec: JsonObject): string[] {
  const seen = new Set<string>();
  return objectsAt(spec, "hostAliases").flatMap((alias, index) => {
    const ip = stringAt(alias, "ip") ?? "";
    const isTaken = seen.has(ip);
    seen.add(ip);
    return isTaken ? [`${at}.hostAliases[${index}].ip: duplicate ip ${quote(ip)}`] : [];
  });
}

function emptySecretWarnings(at: string, spec: JsonObject): string[] {
  return objectsAt(spec, "imagePullSecrets").flatMap((secret, index) =>
    (stringAt(secret, "name") ?? "") === "" ? [`${at}.imagePullSecrets[${index}].name: invalid empty name ""`] : [],
  );
}

function containerWarnings(at: string, container: JsonObject): string[] {
  return [...resourceWarnings(at, container), ...variableWarnings(at, container)];
}

function resourceWarnings(at: string, container: JsonObject): string[] {
  const resources = objectAt(container, "resources");
  return ["limits", "requests"].flatMap((list) =>
    ["memory", "ephemeral-storage"].flatMap((name) => {
      const amount = memberOf(objectAt(resources, list), name);
      if (typeof amount !== "string" || !/^\d+m$/.test(amount) || Number.parseInt(amount, 10) % 1000 === 0) return [];
      return [
        `${at}.resources.${list}[${name}]: fractional byte value ${quote(amount)} is invalid, must be an integer`,
      ];
    }),
  );
}

function variableWarnings(at: string, container: JsonObject): string[] {
  const seen = new Map<string, string | undefined>();
  return (arrayAt(container, "env") ?? []).filter(isObject).flatMap((variable, index) => {
    const name = stringAt(variable, "name") ?? "";
    const isTaken = seen.has(name);
    // A value that builds on the one before does not hide it.
    const builds = (stringAt(variable, "value") ?? "").includes(`$(${name})`);
    seen.set(name, undefined);
    const hides = `hides previous definition of ${quote(name)}, which may be dropped when using apply`;
    return isTaken && !builds ? [`${at}.env[${index}]: ${hides}`] : [];
  });
}

function portWarnings(at: string, spec: JsonObject): string[] {
  const seen = new Map<string, string>();
  return objectsAt(spec, "containers").flatMap((container, index) =>
    objectsAt(container, "ports").flatMap((port, place) => {
      const path = `${at}.containers[${index}].ports[${place}]`;
      const key = [port["containerPort"], port["protocol"] ?? "TCP", port["hostPort"], port["hostIP"]].join(" ");
      const before = seen.get(key);
      seen.set(key, before ?? path);
      return before === undefined ? [] : [`${path}: duplicate port definition with ${before}`];
    }),
  );
}
