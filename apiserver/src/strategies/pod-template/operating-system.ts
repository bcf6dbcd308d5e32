// Restrictions that depend on the operating system of a Pod.
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { textAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { checkDomain, checkOneOf } from "../../validation/fields.js";
import { placedContainers } from "./placed-containers.js";

const OF_LINUX_PODS = [
  ...["appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser"],
  ...["runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"],
];
const OF_LINUX_CONTAINERS = [
  ...["appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"],
  ...["allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"],
];

/** Validates spec.os.name, and that no fields for the other operating system are set. */
export function checkSystem(path: string, spec: JsonObject): FieldError[] {
  const system = objectAt(spec, "os");
  const name = textAt(system ?? {}, "name");
  if (system === undefined) return [];
  if (name === "") return [requiredError(`${path}.os.name`)];
  if (name === "linux") return checkLinux(path, spec);
  return name === "windows" ? checkWindows(path, spec) : checkOneOf(`${path}.os`, name, ["linux", "windows"]);
}

function contexts(path: string, spec: JsonObject): { at: string; context: JsonObject | undefined }[] {
  return [{ at: path, container: spec }, ...placedContainers(path, spec)].map(({ at, container }) => ({
    at: `${at}.securityContext`,
    context: objectAt(container, "securityContext"),
  }));
}

function checkLinux(path: string, spec: JsonObject): FieldError[] {
  return contexts(path, spec)
    .filter(({ context }) => objectAt(context, "windowsOptions") !== undefined)
    .map(({ at }) => forbiddenError(`${at}.windowsOptions`, "windows options cannot be set for a linux pod"));
}

function checkWindows(path: string, spec: JsonObject): FieldError[] {
  const [ofPod, ...ofContainers] = contexts(path, spec);
  const isSet = (holder: JsonObject | undefined, key: string) =>
    memberOf(holder, key) !== undefined || (key === "supplementalGroups" && wasGivenEmpty(holder, key));
  const own = ["hostUsers", "shareProcessNamespace"].filter((key) => isSet(spec, key));
  const hosts = ["hostPID", "hostIPC"].filter((key) => memberOf(spec, key) === true);
  const refused = [
    ...[...own, ...hosts].map((key) => `${path}.${key}`),
    ...OF_LINUX_PODS.filter((key) => isSet(ofPod?.context, key)).map((key) => `${ofPod?.at}.${key}`),
    ...ofContainers.flatMap(({ at, context }) =>
      OF_LINUX_CONTAINERS.filter((key) => isSet(context, key)).map((key) => `${at}.${key}`),
    ),
  ];
  return refused.map((field) => forbiddenError(field, "cannot be set for a windows pod"));
}

/** Validates that either all or none of the containers have hostProcess set. */
export function checkHostProcess(path: string, spec: JsonObject): FieldError[] {
  const valueOf = (holder: JsonObject) =>
    memberOf(objectAt(objectAt(holder, "securityContext"), "windowsOptions"), "hostProcess");
  const ofPod = valueOf(spec);
  const containers = placedContainers(path, spec).map(({ at, container }) => ({ at, own: valueOf(container) }));
  const count = containers.filter(({ own }) => (own ?? ofPod) === true).length;
  const detail = `pod hostProcess value must be identical if both are specified, was ${String(ofPod)}`;
  return [
    ...containers
      .filter(({ own }) => own !== undefined && ofPod !== undefined && own !== ofPod)
      .map(({ at, own }) => invalidError(`${at}.securityContext.windowsOptions.hostProcess`, own ?? null, detail)),
    ...(count > 0 && count < containers.length
      ? [
          invalidError(
            path,
            "",
            "If pod contains any hostProcess containers then all containers must be HostProcess containers",
          ),
        ]
      : []),
    ...(count > 0 && memberOf(spec, "hostNetwork") !== true
      ? [
          invalidError(
            `${path}.hostNetwork`,
            false,
            "hostNetwork must be true if pod contains any hostProcess containers",
          ),
        ]
      : []),
  ];
}

const MAX_SPEC_KIB = 64;
const MAX_USER = 104;
const MAX_DOMAIN = 256;
const NET_BIOS = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DNS = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/** Validates windowsOptions of a security context. */
export function checkWindowsOptions(path: string, options: JsonObject): FieldError[] {
  const [name, spec, user] = ["gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"].map((key) =>
    memberOf(options, key),
  );
  const field = `${path}.gmsaCredentialSpec`;
  const isLong = typeof spec === "string" && Buffer.byteLength(spec) > MAX_SPEC_KIB * 1024;
  return [
    ...(typeof name === "string" ? checkDomain(`${path}.gmsaCredentialSpecName`, name) : []),
    ...(spec === "" ? [invalidError(field, spec, "gmsaCredentialSpec cannot be an empty string")] : []),
    ...(isLong ? [invalidError(field, spec, `gmsaCredentialSpec size must be under ${MAX_SPEC_KIB} KiB`)] : []),
    ...userProblems(user).map((detail) =>
      invalidError(`${path}.runAsUserName`, user ?? null, `runAsUserName${detail}`),
    ),
  ];
}

function userProblems(name: JsonValue | undefined): string[] {
  if (typeof name !== "string") return [];
  if (name === "") return [" cannot be an empty string"];
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(name)) return [" cannot contain control characters"];
  const parts = name.split("\\");
  if (parts.length > 2) return [" cannot contain more than one backslash"];
  const [user = "", domain] = parts.reverse();
  const isDomain = domain === undefined || NET_BIOS.test(domain) || DNS.test(domain);
  return [
    ...(domain !== undefined && domain.length >= MAX_DOMAIN
      ? [`'s Domain length must be under ${MAX_DOMAIN} characters`]
      : []),
    ...(isDomain ? [] : ["'s Domain doesn't match the NetBios nor the DNS format"]),
    ...(user === "" ? ["'s User cannot be empty"] : []),
    ...(user.length > MAX_USER ? [`'s User length must not be longer than ${MAX_USER} characters`] : []),
    ...(/^[. ]+$/.test(user) ? ["'s User cannot contain only periods or spaces"] : []),
    ...(/["/\\:;|=,+*?<>@[\]]/.test(user)
      ? [`'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]`]
      : []),
  ];
}
