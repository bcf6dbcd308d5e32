// Warnings of Kubernetes 1.36 for Pods and Pod templates.
import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, arrayAt, deepEqual, isObject, memberOf, objectAt, stringAt } from "../../json.js";
import { addressWarnings } from "../../validation/addresses.js";
import { labelNameProblems } from "../../validation/names.js";
import { placementWarnings } from "../shared/node-selectors.js";
import { fractionWarnings } from "../shared/resource-requests.js";
import { sourceWarnings } from "../shared/volume-sources.js";
import { placedContainers } from "./placed-containers.js";
import { ARMOR, ARMOR_ADVICE, SECCOMP, SECCOMP_OF_POD } from "./profile-annotations.js";

/** What the names of workloads are used for. */
export const POD_NAMES = "Pod names and hostnames";

/** Warns if the name of a new object is not a DNS label and `use` requires one. */
export function nameWarnings(use: string, object: JsonObject, old: JsonObject | undefined): string[] {
  const problems = old === undefined ? labelNameProblems(textAt(object, "metadata.name")) : [];
  if (problems.length === 0) return [];
  const effect = "which can result in surprising behavior; a DNS label is recommended";
  return [`metadata.name: this is used in ${use}, ${effect}: [${problems.join(" ")}]`];
}

/** Returns the warnings for a new Pod. */
export function podWarnings(pod: JsonObject, old: JsonObject | undefined): string[] {
  return old === undefined ? warningsOf("", pod) : [];
}

/** Returns the warnings for the Pod template at `path` if the object is new or `changed` has changed. Default of `changed`: the template */
export function templateWarnings(
  path: string,
  object: JsonObject,
  old: JsonObject | undefined,
  changed = path,
): string[] {
  const template = at(object, path);
  if (!isObject(template)) return [];
  const isSame = old !== undefined && deepEqual(at(old, changed) ?? {}, at(object, changed) ?? {});
  return isSame ? [] : warningsOf(`${path}.`, template);
}

const SECCOMP_ADVICE = 'non-functional in v1.27+; use the "seccompProfile" field instead';

const OLD_ANNOTATIONS = {
  "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
  "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
  "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
};

function warningsOf(path: string, pod: JsonObject): string[] {
  const spec = objectAt(pod, "spec") ?? {};
  const at = `${path}spec`;
  return [
    ...placementWarnings(at, spec),
    ...annotationWarnings(path, pod),
    ...objectsAt(spec, "volumes").flatMap((volume, index) => sourceWarnings(`${at}.volumes[${index}]`, volume)),
    ...pathWarnings(spec),
    ...hostAliasWarnings(at, spec),
    ...secretWarnings(at, spec),
    ...fractionWarnings(`${at}.overhead`, objectAt(spec, "overhead"), BYTES),
    ...seccompWarnings(path, pod),
    ...placedContainers(at, spec).flatMap(({ at: place, container }) => [
      ...profileOfContainerWarnings(path, pod, container),
      ...containerWarnings(place, container),
    ]),
    ...portWarnings(at, spec),
    ...graceWarnings(at, spec),
    ...affinityWarnings(at, spec),
    ...ipWarnings(at, spec),
  ];
}

// An absent labelSelector matches no Pods.
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

function annotationWarnings(path: string, pod: JsonObject): string[] {
  const annotations = objectAt(objectAt(pod, "metadata"), "annotations");
  return Object.entries(OLD_ANNOTATIONS)
    .filter(([key]) => memberOf(annotations, key) !== undefined)
    .map(([key, advice]) => `${path}metadata.annotations[${key}]: ${advice}`);
}

function seccompWarnings(path: string, pod: JsonObject): string[] {
  const annotations = objectAt(objectAt(pod, "metadata"), "annotations");
  const key = SECCOMP_OF_POD;
  if (at(pod, "spec.securityContext.seccompProfile") !== undefined || memberOf(annotations, key) === undefined)
    return [];
  return [`${path}metadata.annotations[${key}]: ${SECCOMP_ADVICE}`];
}

// Legacy annotations of a container that set a profile which has a field.
function profileOfContainerWarnings(path: string, pod: JsonObject, container: JsonObject): string[] {
  const annotations = objectAt(objectAt(pod, "metadata"), "annotations");
  const context = objectAt(container, "securityContext");
  const name = stringAt(container, "name") ?? "";
  const [seccomp, profile] = [SECCOMP + name, ARMOR + name];
  const isTold = (key: string, field: string) =>
    memberOf(annotations, key) !== undefined && objectAt(context, field) === undefined;
  return [
    ...(isTold(seccomp, "seccompProfile") ? [`${path}metadata.annotations[${seccomp}]: ${SECCOMP_ADVICE}`] : []),
    // For Pods, this warning comes from `copyArmor`.
    ...(path !== "" &&
    isTold(profile, "appArmorProfile") &&
    at(pod, "spec.securityContext.appArmorProfile") === undefined
      ? [`${path}metadata.annotations[${profile}]: ${ARMOR_ADVICE}`]
      : []),
  ];
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

const BYTES = ["memory", "ephemeral-storage"];

function resourceWarnings(at: string, container: JsonObject): string[] {
  const resources = objectAt(container, "resources");
  return BYTES.flatMap((name) =>
    ["limits", "requests"].flatMap((list) =>
      fractionWarnings(`${at}.resources.${list}`, objectAt(resources, list), [name]),
    ),
  );
}

function variableWarnings(at: string, container: JsonObject): string[] {
  const seen = new Map<string, string | undefined>();
  return (arrayAt(container, "env") ?? []).filter(isObject).flatMap((variable, index) => {
    const name = stringAt(variable, "name") ?? "";
    const isTaken = seen.has(name);
    // A value that refers to the previous definition does not hide it.
    const value = stringAt(variable, "value") ?? "";
    const builds = value.includes(`$(${name})`) && value !== `$(${name})` && !Object.hasOwn(variable, "valueFrom");
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
    const free = hostWarnings(path, port);
    const key = `${String(port["containerPort"])}/${String(port["protocol"] ?? "TCP")}`;
    const own = { path, ip: stringAt(port, "hostIP") ?? "", hostPort: Number(port["hostPort"] ?? 0) };
    const others = seen.get(key) ?? [];
    seen.set(key, [...others, own]);
    const taken = others.flatMap((other) => {
      const kind = conflictOf(own, other);
      return kind === undefined ? [] : [`${path}: ${kind} port definition with ${other.path}`];
    });
    return [...free, ...taken];
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

// hostIP without hostPort; kube-apiserver prints the struct.
function hostWarnings(path: string, port: JsonObject): string[] {
  const [name, ip, protocol] = ["name", "hostIP", "protocol"].map((key) => stringAt(port, key) ?? "");
  if (ip === "" || Number(port["hostPort"] ?? 0) !== 0) return [];
  const number = String(port["containerPort"] ?? 0);
  const shown = `{Name:${name} HostPort:0 ContainerPort:${number} Protocol:${protocol} HostIP:${ip}}`;
  return [`${path}: hostIP set without hostPort: ${shown}`];
}

function conflictOf(one: PlacedPort, other: PlacedPort): string | undefined {
  if (one.ip === other.ip && one.hostPort === other.hostPort) return "duplicate";
  if (one.hostPort === 0 || other.hostPort === 0) return "overlapping";
  const isOpen = (one.ip === "") !== (other.ip === "");
  return one.hostPort === other.hostPort && isOpen ? "dangerously ambiguous" : undefined;
}

interface PlacedFile {
  readonly path: string;
  /** The source within a volume with several sources. */
  readonly source: string;
}

/** Warns about overlapping file paths in the volumes of a Pod spec. */
function pathWarnings(spec: JsonObject): string[] {
  return objectsAt(spec, "volumes").flatMap((volume) => {
    const name = quote(stringAt(volume, "name") ?? "");
    const told = (from: string, files: PlacedFile[], before: PlacedFile[] = []) =>
      overlapsOf(files, before).map((overlap) => `volume ${name} (${from}): overlapping paths: ${overlap}`);
    const [map, secret] = [objectAt(volume, "configMap"), objectAt(volume, "secret")];
    const sources = objectsAt(volume, "projected.sources");
    return [
      ...(map === undefined ? [] : told(`ConfigMap ${quote(stringAt(map, "name") ?? "")}`, itemsOf(map, ""))),
      ...(secret === undefined
        ? []
        : told(`Secret ${quote(stringAt(secret, "secretName") ?? "")}`, itemsOf(secret, ""))),
      ...told("DownwardAPI", itemsOf(objectAt(volume, "downwardAPI"), "")),
      ...sources.flatMap((source, index) =>
        Object.keys(source).length === 0
          ? [`volume ${name} (Projected) has no sources provided`]
          : told("Projected", filesOf(source), sources.slice(0, index).flatMap(filesOf)),
      ),
    ];
  });
}

function itemsOf(source: JsonObject | undefined, shown: string): PlacedFile[] {
  return objectsAt(source ?? {}, "items").map((item) => ({ path: stringAt(item, "path") ?? "", source: shown }));
}

function filesOf(projection: JsonObject): PlacedFile[] {
  const [map, secret, token] = ["configMap", "secret", "serviceAccountToken"].map((key) => objectAt(projection, key));
  const [bundle, certificate] = ["clusterTrustBundle", "podCertificate"].map((key) => objectAt(projection, key));
  const named = (kind: string, source: JsonObject | undefined) => `${kind} ${quote(stringAt(source, "name") ?? "")}`;
  const bundleName = stringAt(bundle, "name") ?? stringAt(bundle, "signerName") ?? "";
  const file = (of: JsonObject | undefined, key: string, source: string): PlacedFile[] =>
    memberOf(of, key) === undefined ? [] : [{ path: stringAt(of, key) ?? "", source }];
  return [
    ...itemsOf(map, named("ConfigMap", map)),
    ...itemsOf(secret, named("Secret", secret)),
    ...itemsOf(objectAt(projection, "downwardAPI"), "DownwardAPI"),
    ...file(token, "path", "ServiceAccountToken"),
    ...file(bundle, "path", `ClusterTrustBundle ${quote(bundleName)}`),
    ...file(certificate, "certificateChainPath", "PodCertificate chain"),
    ...file(certificate, "keyPath", "PodCertificate key"),
    ...file(certificate, "credentialBundlePath", "PodCertificate credential bundle"),
  ];
}

function overlapsOf(files: PlacedFile[], before: PlacedFile[]): string[] {
  const placed = [...before, ...files].map(({ path, source }) => ({ path: path.replace(/\/+$/, ""), source }));
  return placed.flatMap((file, index) =>
    placed
      .slice(0, index < before.length ? 0 : index)
      .filter((other) => file.path !== "" && other.path !== "" && standInTheWay(file.path, other.path))
      .map((other) => `${shown(file)} with ${shown(other)}`),
  );
}

function standInTheWay(one: string, other: string): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`);
}

function shown({ path, source }: PlacedFile): string {
  return source === "" ? quote(path) : `${quote(path)} (${source})`;
}
