// Validation of single fields of a Pod spec.
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notFoundError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import {
  checkDomain,
  checkGivenDomain,
  checkIp,
  checkLabelName,
  checkLabels,
  checkOneOf,
  checkQualifiedName,
} from "../../validation/fields.js";
import { underscoredProblems } from "../../validation/names.js";
import { checkPreemption } from "../scheduling/priority-class.js";
import { placedContainers } from "./placed-containers.js";
import { checkOverhead } from "./resources.js";

const MAX_HOST_NAME = 64;
const MAX_INT = 2_147_483_647;
const NOT_EPHEMERAL = "cannot be set for an Ephemeral Container";
const DNS_POLICIES = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NOT_FOR_EPHEMERAL = [
  ...["ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy"],
  ...["restartPolicy", "restartPolicyRules"],
];

/** Validates name fields and deadlines of a Pod spec at `path`. */
export function checkNames(path: string, spec: JsonObject): FieldError[] {
  const deadline = memberOf(spec, "activeDeadlineSeconds");
  const isOutside = typeof deadline === "number" && (deadline < 1 || deadline > MAX_INT);
  return [
    ...checkSubdomain(path, spec, "serviceAccountName"),
    ...checkSubdomain(path, spec, "nodeName"),
    ...(isOutside
      ? [invalidError(`${path}.activeDeadlineSeconds`, deadline, `must be between 1 and ${MAX_INT}, inclusive`)]
      : []),
    ...["hostname", "subdomain"].flatMap((key) => {
      const name = textAt(spec, key);
      return name === "" ? [] : checkLabelName(`${path}.${key}`, name);
    }),
  ];
}

/** Validates hostAliases of a Pod spec at `path`. */
export function checkAliases(path: string, spec: JsonObject): FieldError[] {
  return objectsAt(spec, "hostAliases").flatMap((alias, index) => {
    const at = `${path}.hostAliases[${index}]`;
    const ip = textAt(alias, "ip");
    return [
      ...checkIp(`${at}.ip`, ip),
      ...(arrayAt(alias, "hostnames") ?? []).flatMap((host, place) =>
        checkDomain(`${at}.hostnames[${place}]`, String(host)),
      ),
    ];
  });
}

/** Validates class names, preemptionPolicy, and hostnameOverride of a Pod spec at `path`. */
export function checkClasses(path: string, spec: JsonObject): FieldError[] {
  return [
    ...checkSubdomain(path, spec, "priorityClassName"),
    ...checkGiven(`${path}.runtimeClassName`, memberOf(spec, "runtimeClassName")),
    ...checkPreemption(`${path}.preemptionPolicy`, memberOf(spec, "preemptionPolicy")),
    ...checkHostName(path, spec),
  ];
}

function checkSubdomain(path: string, spec: JsonObject, key: string): FieldError[] {
  return checkGivenDomain(`${path}.${key}`, textAt(spec, key));
}

/** Validates DNS, node selector, and gates of a Pod spec at `path`. */
export function checkPlacing(path: string, spec: JsonObject): FieldError[] {
  return [
    ...checkOneOf(`${path}.dnsPolicy`, memberOf(spec, "dnsPolicy"), DNS_POLICIES),
    ...checkLabels(objectAt(spec, "nodeSelector") ?? {}, `${path}.nodeSelector`),
    ...checkResolver(`${path}.dnsConfig`, spec),
    ...objectsAt(spec, "readinessGates").flatMap((gate, index) => {
      const type = textAt(gate, "conditionType");
      return checkQualifiedName(`${path}.readinessGates[${index}].conditionType`, type);
    }),
    ...checkGates(`${path}.schedulingGates`, objectsAt(spec, "schedulingGates")),
    ...checkOverhead(`${path}.overhead`, objectAt(spec, "overhead")),
  ];
}

function checkResolver(path: string, spec: JsonObject): FieldError[] {
  const config = objectAt(spec, "dnsConfig");
  const isNeeded = memberOf(spec, "dnsPolicy") === "None";
  if (config === undefined)
    return isNeeded ? [requiredError(path, "must provide `dnsConfig` when `dnsPolicy` is None")] : [];
  const [servers = [], searches = []] = ["nameservers", "searches"].map((key) =>
    (arrayAt(config, key) ?? []).map(String),
  );
  if (isNeeded && servers.length === 0) {
    const detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
    return [requiredError(`${path}.nameservers`, detail)];
  }
  const tooMany = (key: string, list: string[], what: string) =>
    invalidError(`${path}.${key}`, list, `must not have more than ${what}`);
  const letters = Buffer.byteLength(searches.join(" "));
  return [
    ...(servers.length > 3 ? [tooMany("nameservers", servers, "3 nameservers")] : []),
    ...servers.flatMap((server, index) => checkIp(`${path}.nameservers[${index}]`, server)),
    ...(searches.length > 32 ? [tooMany("searches", searches, "32 search paths")] : []),
    ...(letters > 2048 ? [tooMany("searches", searches, "2048 characters (including spaces) in the search list")] : []),
    ...searches.flatMap((search, index) => checkSearch(`${path}.searches[${index}]`, search)),
    ...objectsAt(config, "options").flatMap((option, index) =>
      textAt(option, "name") === "" ? [requiredError(`${path}.options[${index}]`, "must not be empty")] : [],
    ),
  ];
}

// Search domains may contain underscores and a trailing dot.
function checkSearch(field: string, search: string): FieldError[] {
  const name = search.replace(/\.$/, "");
  return search === "." ? [] : underscoredProblems(name).map((detail) => invalidError(field, name, detail));
}

function checkHostName(path: string, spec: JsonObject): FieldError[] {
  const [field, name] = [`${path}.hostnameOverride`, memberOf(spec, "hostnameOverride")];
  if (typeof name !== "string") return [];
  const others = ["setHostnameAsFQDN", "hostNetwork"].filter((key) => memberOf(spec, key) === true);
  return [
    ...others.map((key) => forbiddenError(field, `may not be specified when ${key} is true`)),
    ...(Buffer.byteLength(name) > MAX_HOST_NAME ? [tooLongError(field, MAX_HOST_NAME)] : []),
    ...checkDomain(field, name),
  ];
}

/** Validates that a Pod with its own user namespace does not share namespaces or block devices with the host. */
export function checkHostUsers(path: string, spec: JsonObject): FieldError[] {
  if (memberOf(spec, "hostUsers") !== false) return [];
  const shared = { hostNetwork: "hostNetwork", hostPID: "HostPID", hostIPC: "HostIPC" };
  const devices = placedContainers(path, spec).filter(
    ({ container }) => objectsAt(container, "volumeDevices").length > 0,
  );
  return [
    ...Object.entries(shared)
      .filter(([key]) => memberOf(spec, key) === true)
      .map(([, shown]) => `${path}.${shown}`),
    ...devices.map(({ at }) => `${at}.volumeDevices`),
  ].map((field) => forbiddenError(field, "when `hostUsers` is false"));
}

/** Validates that each fileKeyRef refers to an emptyDir volume. */
export function checkFileVariables(path: string, spec: JsonObject): FieldError[] {
  const volumes = new Map(objectsAt(spec, "volumes").map((volume) => [textAt(volume, "name"), volume]));
  return placedContainers(path, spec).flatMap(({ at, container }) =>
    objectsAt(container, "env").flatMap((variable, index) => {
      const reference = objectAt(objectAt(variable, "valueFrom"), "fileKeyRef");
      if (reference === undefined) return [];
      const [field, name] = [`${at}.env[${index}].valueFrom.fileKeyRef.volumeName`, textAt(reference, "volumeName")];
      const volume = volumes.get(name);
      if (volume === undefined) return [notFoundError(field, name)];
      const isEmpty = objectAt(volume, "emptyDir") !== undefined;
      return isEmpty ? [] : [invalidError(field, name, "referenced volume must be of type emptyDir")];
    }),
  );
}

function checkGates(path: string, gates: JsonObject[]): FieldError[] {
  const names = new Set<string>();
  return gates.flatMap((gate, index) => {
    const name = textAt(gate, "name");
    const isTaken = names.has(name);
    names.add(name);
    return [
      ...checkQualifiedName(`${path}[${index}]`, name),
      ...(isTaken ? [duplicateError(`${path}[${index}]`, name)] : []),
    ];
  });
}

/** Validates resourceClaims of a Pod spec at `path`. */
export function checkClaims(path: string, spec: JsonObject): FieldError[] {
  const names = new Set<string>();
  return objectsAt(spec, "resourceClaims").flatMap((claim, index) => {
    const at = `${path}.resourceClaims[${index}]`;
    const name = textAt(claim, "name");
    const isTaken = name !== "" && names.has(name);
    names.add(name);
    const [own, template] = ["resourceClaimName", "resourceClaimTemplateName"].map(
      (key) => memberOf(claim, key) ?? null,
    ) as [string | null, string | null];
    const shown = { Name: name, ResourceClaimName: own, ResourceClaimTemplateName: template };
    return [
      ...(isTaken ? [duplicateError(`${at}.name`, name)] : checkLabelName(`${at}.name`, name)),
      ...(own !== null && template !== null
        ? [
            invalidError(
              at,
              shown,
              "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
          ]
        : []),
      ...(own === null && template === null
        ? [invalidError(at, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")]
        : []),
      ...checkGiven(`${at}.resourceClaimName`, own),
      ...checkGiven(`${at}.resourceClaimTemplateName`, template),
    ];
  });
}

function checkGiven(path: string, name: JsonValue | undefined): FieldError[] {
  return typeof name === "string" ? checkDomain(path, name) : [];
}

/** Validates that fields that ephemeral containers do not support are absent. */
export function checkEphemeralFields(path: string, container: JsonObject): FieldError[] {
  const fields = NOT_FOR_EPHEMERAL.filter((key) => {
    const value = memberOf(container, key);
    const isEmpty =
      (value === undefined && !wasGivenEmpty(container, key)) ||
      (key === "resources" && Object.keys(Object(value)).length === 0);
    return !isEmpty;
  }).map((key) => forbiddenError(`${path}.${key}`, NOT_EPHEMERAL));
  const below = objectsAt(container, "volumeMounts").flatMap((mount, index) =>
    ["subPath", "subPathExpr"]
      .filter((key) => textAt(mount, key) !== "")
      .map((key) => forbiddenError(`${path}.volumeMounts[${index}].${key}`, NOT_EPHEMERAL)),
  );
  return [...fields, ...below];
}

/** Validates that there are no ephemeral containers in a Pod template or on create. */
export function checkNoEphemeral(path: string, spec: JsonObject, detail: string): FieldError[] {
  return (arrayAt(spec, "ephemeralContainers") ?? []).length === 0
    ? []
    : [forbiddenError(`${path}.ephemeralContainers`, detail)];
}
