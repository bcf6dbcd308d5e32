// Checks that the Pod Security Standard restricted adds to baseline.
import { objectsAt } from "../../builtin/read-path.js";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../../json.js";
import { capabilities, hostPathVolumes, procMount, procMountAlways, seccompProfile } from "./baseline-checks.js";
import {
  type CheckedPod,
  type SecurityCheck,
  containersOf,
  contextOf,
  counted,
  distinct,
  hasOwnUsers,
  isOfWindows,
  named,
  quoted,
  settersOf,
} from "./security-check.js";

const isExempt = (pod: CheckedPod): boolean => pod.minor >= 25 && isOfWindows(pod);

const privilegeEscalation: SecurityCheck = (pod) => {
  const bad = containersOf(pod).filter((container) => contextOf(container, "allowPrivilegeEscalation") !== false);
  if (pod.minor < 8 || isExempt(pod) || bad.length === 0) return undefined;
  return {
    reason: "allowPrivilegeEscalation != false",
    detail: `${named(bad)} must set securityContext.allowPrivilegeEscalation=false`,
  };
};

const capabilitiesDropped: SecurityCheck = (pod) => {
  if (isExempt(pod)) return undefined;
  const listOf = (container: JsonObject, list: string) => {
    const given = contextOf(container, "capabilities");
    return (arrayAt(isObject(given) ? given : undefined, list) ?? []).map(String);
  };
  const foreign = (container: JsonObject) => listOf(container, "add").filter((one) => one !== "NET_BIND_SERVICE");
  const keeping = containersOf(pod).filter((container) => !listOf(container, "drop").includes("ALL"));
  const adding = containersOf(pod).filter((container) => foreign(container).length > 0);
  const details = [
    ...(keeping.length > 0 ? [`${named(keeping)} must set securityContext.capabilities.drop=["ALL"]`] : []),
    ...(adding.length > 0
      ? [
          `${named(adding)} must not include ${quoted(distinct(adding.flatMap(foreign)))} in securityContext.capabilities.add`,
        ]
      : []),
  ];
  return details.length === 0 ? undefined : { reason: "unrestricted capabilities", detail: details.join("; ") };
};

const VOLUMES = [
  ...["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"],
  "secret",
];

const restrictedVolumes: SecurityCheck = ({ spec }) => {
  const typeOf = (volume: JsonObject) => Object.keys(volume).find((key) => key !== "name" && isObject(volume[key]));
  const bad = objectsAt(spec, "volumes").filter(
    (volume) => !VOLUMES.some((key) => objectAt(volume, key) !== undefined),
  );
  if (bad.length === 0) return undefined;
  const types = distinct(bad.map((volume) => typeOf(volume) ?? "unknown"));
  const what = counted("restricted volume type", "restricted volume types", types.length);
  const who = `${counted("volume", "volumes", bad.length)} ${quoted(bad.map((one) => stringAt(one, "name") ?? ""))}`;
  return {
    reason: "restricted volume types",
    detail: `${who} ${counted("uses", "use", bad.length)} ${what} ${quoted(types)}`,
  };
};

const runAsNonRoot: SecurityCheck = (pod) => {
  if (pod.minor >= 35 && hasOwnUsers(pod)) return undefined;
  const [own, reason] = [contextOf(pod.spec, "runAsNonRoot"), "runAsNonRoot != true"];
  const explicit = containersOf(pod).filter((container) => contextOf(container, "runAsNonRoot") === false);
  const setters = settersOf(own === false, explicit);
  if (setters.length > 0)
    return { reason, detail: `${setters.join(" and ")} must not set securityContext.runAsNonRoot=false` };
  const silent = containersOf(pod).filter((container) => contextOf(container, "runAsNonRoot") === undefined);
  if (own === true || silent.length === 0) return undefined;
  return { reason, detail: `pod or ${named(silent)} must set securityContext.runAsNonRoot=true` };
};

const runAsUser: SecurityCheck = (pod) => {
  if (pod.minor < 23 || (pod.minor >= 35 && hasOwnUsers(pod))) return undefined;
  const bad = containersOf(pod).filter((container) => contextOf(container, "runAsUser") === 0);
  const setters = settersOf(contextOf(pod.spec, "runAsUser") === 0, bad);
  return setters.length === 0
    ? undefined
    : { reason: "runAsUser=0", detail: `${setters.join(" and ")} must not set runAsUser=0` };
};

const seccompSet: SecurityCheck = (pod) => {
  if (isExempt(pod)) return undefined;
  const explicit = seccompProfile(pod);
  if (explicit !== undefined) return explicit;
  const silent = containersOf(pod).filter((container) => contextOf(container, "seccompProfile") === undefined);
  if (contextOf(pod.spec, "seccompProfile") !== undefined || silent.length === 0) return undefined;
  const detail = `pod or ${named(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`;
  return { reason: "seccompProfile", detail };
};

interface Restriction {
  readonly check: SecurityCheck;
  /** The first minor version of Kubernetes with the check. */
  readonly since: number;
  /** The baseline check that it replaces. */
  readonly overrides?: SecurityCheck;
}

/** The checks of the level, in the order in which violations are reported. */
export const RESTRICTED: readonly Restriction[] = [
  { check: privilegeEscalation, since: 8 },
  { check: capabilitiesDropped, since: 22, overrides: capabilities },
  { check: procMountAlways, since: 35, overrides: procMount },
  { check: restrictedVolumes, since: 0, overrides: hostPathVolumes },
  { check: runAsNonRoot, since: 0 },
  { check: runAsUser, since: 23 },
  { check: seccompSet, since: 19, overrides: seccompProfile },
];
