// Checks of the Pod Security Standard baseline, in the order in which violations are reported.
import { objectsAt } from "../../builtin/read-path.js";
import { ARMOR, SECCOMP, SECCOMP_OF_POD } from "../../strategies/pod-template/profile-annotations.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, objectAt, stringAt } from "../../json.js";
import {
  type CheckedPod,
  type SecurityCheck,
  type Violation,
  containersOf,
  contextOf,
  counted,
  distinct,
  hasOwnUsers,
  named,
  quoted,
  settersOf,
} from "./security-check.js";

const PROFILES = ["RuntimeDefault", "Localhost"];
const CAPABILITIES = [
  ...["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"],
  ...["SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"],
];

function typeOf(profile: JsonValue | undefined): string | undefined {
  return isObject(profile) ? (stringAt(profile, "type") ?? "") : undefined;
}

function isBadType(profile: JsonValue | undefined): boolean {
  const type = typeOf(profile);
  return type !== undefined && !PROFILES.includes(type);
}

const appArmorProfile: SecurityCheck = (pod) => {
  const own = contextOf(pod.spec, "appArmorProfile");
  const bad = containersOf(pod).filter((one) => isBadType(contextOf(one, "appArmorProfile")));
  const annotations = Object.entries(pod.annotations)
    .filter(([key, value]) => key.startsWith(ARMOR) && !/^($|runtime\/default$|localhost\/)/.test(String(value)))
    .map(([key, value]) => `${key}="${String(value)}"`)
    .sort();
  const values = [...(isBadType(own) ? [own] : []), ...bad.map((one) => contextOf(one, "appArmorProfile"))];
  const types = [...distinct(values.map((one) => typeOf(one) ?? "")), ...annotations];
  const setters = settersOf(isBadType(own), bad);
  if (annotations.length > 0) setters.push(counted("annotation", "annotations", annotations.length));
  if (setters.length === 0) return undefined;
  return {
    reason: counted("forbidden AppArmor profile", "forbidden AppArmor profiles", types.length),
    detail: `${setters.join(" and ")} must not set AppArmor profile type to ${quoted(types)}`,
  };
};

function addedTo(container: JsonObject): string[] {
  const capabilities = contextOf(container, "capabilities");
  return (arrayAt(isObject(capabilities) ? capabilities : undefined, "add") ?? []).map(String);
}

/** Restricts the capabilities that containers add. */
export const capabilities: SecurityCheck = (pod) => {
  const foreign = (container: JsonObject) => addedTo(container).filter((one) => !CAPABILITIES.includes(one));
  const bad = containersOf(pod).filter((container) => foreign(container).length > 0);
  if (bad.length === 0) return undefined;
  const added = quoted(distinct(bad.flatMap(foreign)));
  return {
    reason: "non-default capabilities",
    detail: `${named(bad)} must not include ${added} in securityContext.capabilities.add`,
  };
};

const hostNamespaces: SecurityCheck = ({ spec }) => {
  const given = ["hostNetwork", "hostPID", "hostIPC"].filter((key) => spec[key] === true);
  if (given.length === 0) return undefined;
  return { reason: "host namespaces", detail: given.map((key) => `${key}=true`).join(", ") };
};

/** Forbids hostPath volumes. */
export const hostPathVolumes: SecurityCheck = ({ spec }) => {
  const bad = objectsAt(spec, "volumes").filter((volume) => objectAt(volume, "hostPath") !== undefined);
  if (bad.length === 0) return undefined;
  const names = quoted(bad.map((volume) => stringAt(volume, "name") ?? ""));
  return { reason: "hostPath volumes", detail: `${counted("volume", "volumes", bad.length)} ${names}` };
};

const hostPorts: SecurityCheck = (pod) => {
  const portsOf = (container: JsonObject) =>
    objectsAt(container, "ports").flatMap(({ hostPort = 0 }) => (hostPort === 0 ? [] : [String(hostPort)]));
  const bad = containersOf(pod).filter((container) => portsOf(container).length > 0);
  const ports = distinct(bad.flatMap(portsOf));
  if (bad.length === 0) return undefined;
  const uses = `${counted("uses", "use", bad.length)} ${counted("hostPort", "hostPorts", ports.length)}`;
  return { reason: "hostPort", detail: `${named(bad)} ${uses} ${ports.join(", ")}` };
};

function hostsOf(handler: JsonObject | undefined): string[] {
  return ["httpGet", "tcpSocket"].flatMap((kind) => stringAt(objectAt(handler, kind), "host") || []);
}

const hostProbes: SecurityCheck = (pod) => {
  if (pod.minor < 34) return undefined;
  const ofContainer = (container: JsonObject) => {
    const lifecycle = objectAt(container, "lifecycle");
    const probes = ["livenessProbe", "readinessProbe", "startupProbe"].map((key) => objectAt(container, key));
    return [...probes, objectAt(lifecycle, "postStart"), objectAt(lifecycle, "preStop")].flatMap(hostsOf);
  };
  const bad = containersOf(pod).filter((container) => ofContainer(container).length > 0);
  const hosts = distinct(bad.flatMap(ofContainer));
  if (bad.length === 0) return undefined;
  const names = distinct(bad.map((container) => stringAt(container, "name") ?? ""));
  const what = counted("probe or lifecycle host", "probe or lifecycle hosts", hosts.length);
  const who = `${counted("container", "containers", names.length)} ${quoted(names)}`;
  return {
    reason: "probe or lifecycle host",
    detail: `${who} ${counted("uses", "use", names.length)} ${what} ${quoted(hosts)}`,
  };
};

const privileged: SecurityCheck = (pod) => {
  const bad = containersOf(pod).filter((container) => contextOf(container, "privileged") === true);
  if (bad.length === 0) return undefined;
  return { reason: "privileged", detail: `${named(bad)} must not set securityContext.privileged=true` };
};

function unmasked(pod: CheckedPod): Violation | undefined {
  const typed = (container: JsonObject) => String(contextOf(container, "procMount") ?? "Default");
  const bad = containersOf(pod).filter((container) => typed(container) !== "Default");
  if (bad.length === 0) return undefined;
  const types = quoted(distinct(bad.map(typed)));
  return { reason: "procMount", detail: `${named(bad)} must not set securityContext.procMount to ${types}` };
}

/** Forbids a procMount other than Default; since 1.35 only for Pods without a user namespace. */
export const procMount: SecurityCheck = (pod) => (pod.minor >= 35 && hasOwnUsers(pod) ? undefined : unmasked(pod));

/** Like `procMount`, but also for Pods with a user namespace. */
export const procMountAlways: SecurityCheck = unmasked;

const seLinuxOptions: SecurityCheck = (pod) => {
  const types = ["", "container_t", "container_init_t", "container_kvm_t"];
  if (pod.minor >= 31) types.push("container_engine_t");
  const optionsOf = (holder: JsonObject) => contextOf(holder, "seLinuxOptions");
  const text = (options: JsonValue | undefined, key: string) =>
    isObject(options) ? (stringAt(options, key) ?? "") : "";
  const isBad = (options: JsonValue | undefined) =>
    !types.includes(text(options, "type")) || text(options, "user") !== "" || text(options, "role") !== "";
  const bad = containersOf(pod).filter((container) => isBad(optionsOf(container)));
  const setters = settersOf(isBad(optionsOf(pod.spec)), bad);
  if (setters.length === 0) return undefined;
  const all = [pod.spec, ...bad].map(optionsOf);
  const wrong = distinct(all.map((options) => text(options, "type")).filter((type) => !types.includes(type)));
  const parts = [
    ...(wrong.length > 0 ? [`${counted("type", "types", wrong.length)} ${quoted(wrong)}`] : []),
    ...["user", "role"].flatMap((key) => (all.some((one) => text(one, key) !== "") ? [`${key} may not be set`] : [])),
  ];
  return {
    reason: "seLinuxOptions",
    detail: `${setters.join(" and ")} set forbidden securityContext.seLinuxOptions: ${parts.join("; ")}`,
  };
};

// Until 1.19, annotations set the seccomp profile.
const seccompAnnotations: SecurityCheck = (pod) => {
  const names = containersOf(pod).map((container) => SECCOMP + (stringAt(container, "name") ?? ""));
  const bad = [SECCOMP_OF_POD, ...names].flatMap((key) => {
    const value = stringAt(pod.annotations, key);
    const isFine = value === undefined || /^(runtime\/default|docker\/default|localhost\/.*)$/s.test(value);
    return isFine ? [] : [`${key}=${quote(value)}`];
  });
  if (bad.length === 0) return undefined;
  const what = counted("annotation", "annotations", distinct(bad).length);
  return { reason: "seccompProfile", detail: `forbidden ${what} ${distinct(bad).join(", ")}` };
};

/** Forbids seccomp profiles other than RuntimeDefault and Localhost. */
export const seccompProfile: SecurityCheck = (pod) => {
  if (pod.minor < 19) return seccompAnnotations(pod);
  const own = contextOf(pod.spec, "seccompProfile");
  const bad = containersOf(pod).filter((container) => isBadType(contextOf(container, "seccompProfile")));
  const setters = settersOf(isBadType(own), bad);
  if (setters.length === 0) return undefined;
  const values = [...(isBadType(own) ? [own] : []), ...bad.map((one) => contextOf(one, "seccompProfile"))];
  const types = quoted(distinct(values.map((one) => typeOf(one) ?? "")));
  return {
    reason: "seccompProfile",
    detail: `${setters.join(" and ")} must not set securityContext.seccompProfile.type to ${types}`,
  };
};

const SYSCTLS: readonly [since: number, names: readonly string[]][] = [
  [
    0,
    [
      ...["kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"],
      ...["net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"],
    ],
  ],
  [27, ["net.ipv4.ip_local_reserved_ports"]],
  [
    29,
    [
      ...["net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout"],
      ...["net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"],
    ],
  ],
  [32, ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]],
];

const sysctls: SecurityCheck = ({ spec, minor }) => {
  const allowed = SYSCTLS.flatMap(([since, names]) => (minor >= since ? names : []));
  const given = objectsAt(spec, "securityContext.sysctls").map((sysctl) => stringAt(sysctl, "name") ?? "");
  const bad = given.filter((name) => !allowed.includes(name));
  return bad.length === 0 ? undefined : { reason: "forbidden sysctls", detail: bad.join(", ") };
};

const windowsHostProcess: SecurityCheck = (pod) => {
  const isHost = (holder: JsonObject) => {
    const options = contextOf(holder, "windowsOptions");
    return isObject(options) && options["hostProcess"] === true;
  };
  const setters = settersOf(isHost(pod.spec), containersOf(pod).filter(isHost));
  if (setters.length === 0) return undefined;
  const detail = `${setters.join(" and ")} must not set securityContext.windowsOptions.hostProcess=true`;
  return { reason: "hostProcess", detail };
};

/** All checks of the level. */
export const BASELINE: readonly SecurityCheck[] = [
  ...[appArmorProfile, capabilities, hostNamespaces, hostPathVolumes, hostPorts, hostProbes, privileged, procMount],
  ...[seLinuxOptions, seccompProfile, sysctls, windowsHostProcess],
];
