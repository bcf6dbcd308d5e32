// Security contexts of Pods and containers.
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import { checkOneOf, checkRequired } from "../../validation/fields.js";
import { checkWindowsOptions } from "./operating-system.js";
import { checkRelative } from "./projected-volumes.js";

const MAX_ID = 2_147_483_647;
const PROFILES = ["Localhost", "RuntimeDefault", "Unconfined"];
const MAX_PROFILE = 4095;
const MAX_SYSCTL = 253;
const SYSCTL = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
/** Sysctls of the network namespace and of the IPC namespace. */
const OF_NETWORK = /^net[./]/;
const OF_IPC = /^(kernel[./](sem|shm(all|max|mni|_rmid_forced)?|msg(max|mnb|mni)?)$|fs[./]mqueue[./])/;

/** Validates the security context of a Pod spec at `path`. */
export function checkPodSecurity(path: string, spec: JsonObject): FieldError[] {
  const context = objectAt(spec, "securityContext");
  const at = `${path}.securityContext`;
  const isShared = memberOf(spec, "shareProcessNamespace") === true && memberOf(spec, "hostPID") === true;
  const shared = "ShareProcessNamespace and HostPID cannot both be enabled";
  return [
    ...(isShared ? [invalidError(`${at}.shareProcessNamespace`, true, shared)] : []),
    ...(context === undefined
      ? []
      : [
          ...["fsGroup", "runAsUser", "runAsGroup"].flatMap((key) => checkId(`${at}.${key}`, context[key])),
          ...(arrayAt(context, "supplementalGroups") ?? []).flatMap((id, index) =>
            checkId(`${at}.supplementalGroups[${index}]`, id),
          ),
          ...checkSysctls(`${at}.sysctls`, objectsAt(context, "sysctls"), spec),
          ...checkOneOf(`${at}.fsGroupChangePolicy`, context["fsGroupChangePolicy"], ["Always", "OnRootMismatch"]),
          ...checkProfiles(at, context),
          ...checkOneOf(`${at}.supplementalGroupsPolicy`, context["supplementalGroupsPolicy"], ["Merge", "Strict"]),
          ...checkOneOf(`${at}.seLinuxChangePolicy`, context["seLinuxChangePolicy"], ["Recursive"]),
        ]),
  ];
}

/** Validates the security context of a container at `path`. */
export function checkContainerSecurity(path: string, container: JsonObject, podSpec: JsonObject): FieldError[] {
  const [at, context] = [`${path}.securityContext`, objectAt(container, "securityContext")];
  if (context === undefined) return [];
  const mount = memberOf(context, "procMount");
  const isBare = mount === "Unmasked" && memberOf(podSpec, "hostUsers") !== false;
  return [
    ...["runAsUser", "runAsGroup"].flatMap((key) => checkId(`${at}.${key}`, context[key])),
    ...checkOneOf(`${at}.procMount`, mount, ["Default", "Unmasked"]),
    ...(isBare ? [invalidError(`${at}.procMount`, mount, "`hostUsers` must be false to use `Unmasked`")] : []),
    ...checkEscalation(at, context),
    ...checkProfiles(at, context),
  ];
}

function checkId(field: string, id: JsonValue | undefined): FieldError[] {
  if (typeof id !== "number" || (id >= 0 && id <= MAX_ID)) return [];
  return [invalidError(field, id, `must be between 0 and ${MAX_ID}, inclusive`)];
}

function checkSysctls(path: string, settings: JsonObject[], spec: JsonObject): FieldError[] {
  const names = new Set<string>();
  return settings.flatMap((setting, index) => {
    const [field, name] = [`${path}[${index}].name`, textAt(setting, "name")];
    const isTaken = names.has(name);
    names.add(name);
    const isName = Buffer.byteLength(name) <= MAX_SYSCTL && new RegExp(SYSCTL).test(name);
    const hosts = [OF_NETWORK.test(name) ? "hostNetwork" : "", OF_IPC.test(name) ? "hostIPC" : ""];
    return [
      ...(name === "" ? [requiredError(field)] : []),
      ...(isName || name === ""
        ? []
        : [invalidError(field, name, `must have at most ${MAX_SYSCTL} characters and match regex ${SYSCTL}`)]),
      ...(isName && isTaken ? [duplicateError(field, name)] : []),
      ...hosts
        .filter((host) => memberOf(spec, host) === true)
        .map((host) => invalidError(field, name, `may not be specified when '${host}' is true`)),
    ];
  });
}

function checkProfiles(path: string, context: JsonObject): FieldError[] {
  const [seccomp, armor] = [objectAt(context, "seccompProfile"), objectAt(context, "appArmorProfile")];
  const windows = objectAt(context, "windowsOptions");
  return [
    ...(seccomp === undefined ? [] : checkSeccomp(`${path}.seccompProfile`, seccomp)),
    ...(windows === undefined ? [] : checkWindowsOptions(`${path}.windowsOptions`, windows)),
    ...(armor === undefined ? [] : checkArmor(`${path}.appArmorProfile`, armor)),
  ];
}

function checkSeccomp(path: string, profile: JsonObject): FieldError[] {
  const [type, local] = [textAt(profile, "type"), memberOf(profile, "localhostProfile")];
  const [field, isLocal] = [`${path}.localhostProfile`, type === "Localhost"];
  const foreign = "can only be set when seccomp type is Localhost";
  return [
    ...(type === "" ? [requiredError(`${path}.type`, "type is required when seccompProfile is set")] : []),
    ...(type === "" ? [] : checkOneOf(`${path}.type`, type, PROFILES)),
    ...(isLocal && local === undefined ? [requiredError(field, "must be set when seccomp type is Localhost")] : []),
    ...(isLocal && local !== undefined ? checkRelative(field, String(local)) : []),
    ...(isLocal || local === undefined ? [] : [invalidError(field, goProfile(profile), foreign)]),
  ];
}

/** Validates an AppArmor profile at `path`. */
export function checkArmor(path: string, profile: JsonObject): FieldError[] {
  const [type, local] = [textAt(profile, "type"), memberOf(profile, "localhostProfile")];
  const field = `${path}.localhostProfile`;
  const missing = "must be set when AppArmor type is Localhost";
  if (type === "") return [requiredError(`${path}.type`, "type is required when appArmorProfile is set")];
  if (type !== "Localhost") {
    const foreign = "can only be set when AppArmor type is Localhost";
    if (type !== "RuntimeDefault" && type !== "Unconfined") return checkOneOf(`${path}.type`, type, PROFILES);
    return local === undefined ? [] : [invalidError(field, local, foreign)];
  }
  if (typeof local !== "string") return [requiredError(field, missing)];
  return [
    ...(local.trim() === local
      ? checkRequired(field, local).map(() => requiredError(field, missing))
      : [invalidError(field, local, "must not be padded with whitespace")]),
    ...(Buffer.byteLength(local) > MAX_PROFILE ? [tooLongError(field, MAX_PROFILE)] : []),
  ];
}

function checkEscalation(path: string, context: JsonObject): FieldError[] {
  if (memberOf(context, "allowPrivilegeEscalation") !== false) return [];
  const added = arrayAt(objectAt(context, "capabilities"), "add") ?? [];
  const no = (what: string) =>
    invalidError(path, goContext(context), `cannot set \`allowPrivilegeEscalation\` to false and ${what}`);
  return [
    ...(memberOf(context, "privileged") === true ? [no("`privileged` to true")] : []),
    ...added.filter((one) => one === "CAP_SYS_ADMIN").map(() => no("`capabilities.Add` CAP_SYS_ADMIN")),
  ];
}

// kube-apiserver prints Go structs, with their fields in order.
function goContext(context: JsonObject): JsonObject {
  const own = (key: string) => memberOf(context, key) ?? null;
  const part = (key: string, fields: (of: JsonObject) => JsonObject) => {
    const value = objectAt(context, key);
    return value === undefined ? null : fields(value);
  };
  return {
    Capabilities: part("capabilities", ({ add, drop }) => ({ Add: add ?? null, Drop: drop ?? null })),
    Privileged: own("privileged"),
    SELinuxOptions: part("seLinuxOptions", ({ user, role, type, level }) => ({
      ...{ User: user ?? "", Role: role ?? "", Type: type ?? "", Level: level ?? "" },
    })),
    WindowsOptions: part("windowsOptions", (of) => ({
      GMSACredentialSpecName: of["gmsaCredentialSpecName"] ?? null,
      GMSACredentialSpec: of["gmsaCredentialSpec"] ?? null,
      RunAsUserName: of["runAsUserName"] ?? null,
      HostProcess: of["hostProcess"] ?? null,
    })),
    RunAsUser: own("runAsUser"),
    RunAsGroup: own("runAsGroup"),
    RunAsNonRoot: own("runAsNonRoot"),
    ReadOnlyRootFilesystem: own("readOnlyRootFilesystem"),
    AllowPrivilegeEscalation: own("allowPrivilegeEscalation"),
    ProcMount: own("procMount"),
    SeccompProfile: part("seccompProfile", goProfile),
    AppArmorProfile: part("appArmorProfile", goProfile),
  };
}

function goProfile({ type, localhostProfile }: JsonObject): JsonObject {
  return { Type: type ?? "", LocalhostProfile: localhostProfile ?? null };
}
