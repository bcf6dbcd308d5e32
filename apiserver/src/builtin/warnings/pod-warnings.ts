// What Kubernetes 1.36 warns of in Pods and in the templates of workloads.
import { quote } from "../../errors/quote.js";
import { arrayAt, deepEqual, isObject, memberOf, objectAt, stringAt, type JsonObject } from "../../json.js";
import { at, objectsAt } from "../read-path.js";
import { addressWarnings } from "../rules/address-syntax.js";
import { placedContainers } from "../rules/pods/placed-containers.js";
import { podTemplatePathOf } from "../type-facts.js";
import { sourceWarnings } from "./kind-warnings.js";
import { pathWarnings } from "./path-warnings.js";

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
    ...selectorWarnings(`${at}.topologySpreadConstraints`, objectsAt(spec, "topologySpreadConstraints")),
    ...objectsAt(spec, "volumes").flatMap((volume, index) => sourceWarnings(`${at}.volumes[${index}]`, volume)),
    ...pathWarnings(spec),
    ...hostAliasWarnings(at, spec),
    ...secretWarnings(at, spec),
    ...["initContainers", "containers"].flatMap((list) =>
      objectsAt(spec, list).flatMap((container, index) => containerWarnings(`${at}.${list}[${index}]`, container)),
    ),
    ...portWarnings(at, spec),
    ...graceWarnings(at, spec),
    ...affinityWarnings(at, spec),
    ...ipWarnings(at, spec),
  ];
}

// No Pod is what nothing selects.
function selectorWarnings(path: string, terms: JsonObject[], below = ""): string[] {
  return terms.flatMap((term, index) =>
    objectAt(below === "" ? term : objectAt(term, below), "labelSelector") === undefined
      ? [
          `${path}[${index}]${below === "" ? "" : `.${below}`}.labelSelector: a null labelSelector results in matching no pod`,
        ]
      : [],
  );
}

function affinityWarnings(at: string, spec: JsonObject): string[] {
  return ["podAffinity", "podAntiAffinity"].flatMap((kind) => {
    const [path, affinity] = [`${at}.affinity.${kind}`, objectAt(objectAt(spec, "affinity"), kind) ?? {}];
    const [required, preferred] = ["required", "preferred"].map(
      (how) => `${how}DuringSchedulingIgnoredDuringExecution`,
    ) as [string, string];
    return [
      ...selectorWarnings(`${path}.${required}`, objectsAt(affinity, required)),
      ...selectorWarnings(`${path}.${preferred}`, objectsAt(affinity, preferred), "podAffinityTerm"),
    ];
  });
}

function ipWarnings(at: string, spec: JsonObject): string[] {
  const servers = arrayAt(objectAt(spec, "dnsConfig"), "nameservers") ?? [];
  const aliases = objectsAt(spec, "hostAliases");
  return [
    ...servers.flatMap((server, index) => addressWarnings(`${at}.dnsConfig.nameservers[${index}]`, String(server))),
    ...aliases.flatMap(({ ip }, index) => addressWarnings(`${at}.hostAliases[${index}].ip`, String(ip))),
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

function secretWarnings(at: string, spec: JsonObject): string[] {
  const names = objectsAt(spec, "imagePullSecrets").map((secret) => stringAt(secret, "name") ?? "");
  const field = (index: number) => `${at}.imagePullSecrets[${index}].name`;
  return [
    ...names.flatMap((name, index) =>
      names.indexOf(name) < index ? [`${field(index)}: duplicate name ${quote(name)}`] : [],
    ),
    ...names.flatMap((name, index) => (name === "" ? [`${field(index)}: invalid empty name ""`] : [])),
  ];
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

interface PlacedPort {
  readonly path: string;
  readonly ip: string;
  readonly hostPort: number;
}

function portWarnings(at: string, spec: JsonObject): string[] {
  const ports = placedContainers(at, spec).flatMap(({ at: path, container }) =>
    objectsAt(container, "ports").map((port, index) => ({ path: `${path}.ports[${index}]`, port })),
  );
  const [seen, names] = [new Map<string, PlacedPort[]>(), new Map<string, string>()];
  const ofNumbers = ports.flatMap(({ path, port }) => {
    const key = `${String(port["containerPort"])}/${String(port["protocol"] ?? "TCP")}`;
    const own = { path, ip: stringAt(port, "hostIP") ?? "", hostPort: Number(port["hostPort"] ?? 0) };
    const others = seen.get(key) ?? [];
    seen.set(key, [...others, own]);
    return others.flatMap((other) => {
      const kind = conflictOf(own, other);
      return kind === undefined ? [] : [`${path}: ${kind} port definition with ${other.path}`];
    });
  });
  const ofNames = ports.flatMap(({ path, port }) => {
    const name = stringAt(port, "name") ?? "";
    const before = names.get(name);
    if (name !== "" && before === undefined) names.set(name, path);
    if (before === undefined) return [];
    const effect = `services and probes that select ports by name will use ${before}`;
    return [`${path}: duplicate port name ${quote(name)} with ${before}, ${effect}`];
  });
  return [...ofNumbers, ...ofNames];
}

function conflictOf(one: PlacedPort, other: PlacedPort): string | undefined {
  if (one.ip === other.ip && one.hostPort === other.hostPort) return "duplicate";
  if (one.hostPort === 0 || other.hostPort === 0) return "overlapping";
  const isOpen = (one.ip === "") !== (other.ip === "");
  return one.hostPort === other.hostPort && isOpen ? "dangerously ambiguous" : undefined;
}
