// Single fields of a pod spec that name something or count something.
import {
  duplicateError,
  forbiddenError,
  invalidError,
  notFoundError,
  requiredError,
  type FieldError,
} from "../../../errors/field-error.js";
import { arrayAt, memberOf, objectAt, type JsonObject, type JsonValue } from "../../../json.js";
import { wasGivenEmpty } from "../../normal-form.js";
import { objectsAt, textAt } from "../../read-path.js";
import {
  checkDomain,
  checkGivenDomain,
  checkLabelName,
  checkLabels,
  checkOneOf,
  checkQualifiedName,
} from "../field-rules.js";
import { addressProblems } from "../name-syntax.js";
import { checkOverhead } from "./resource-rules.js";

const MAX_INT = 2_147_483_647;
const DNS_POLICIES = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NOT_FOR_EPHEMERAL = [
  ...["ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy"],
  ...["restartPolicy", "restartPolicyRules"],
];

/** Checks where a pod spec at `path` runs and with what names. */
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

/** Checks the hosts that a pod spec at `path` knows by other names. */
export function checkAliases(path: string, spec: JsonObject): FieldError[] {
  return objectsAt(spec, "hostAliases").flatMap((alias, index) => {
    const at = `${path}.hostAliases[${index}]`;
    const ip = textAt(alias, "ip");
    return [
      ...addressProblems(ip).map((detail) => invalidError(`${at}.ip`, ip, detail)),
      ...(arrayAt(alias, "hostnames") ?? []).flatMap((host, place) =>
        checkDomain(`${at}.hostnames[${place}]`, String(host)),
      ),
    ];
  });
}

/** Checks what classes a pod spec at `path` names. */
export function checkClasses(path: string, spec: JsonObject): FieldError[] {
  return [
    ...checkSubdomain(path, spec, "priorityClassName"),
    ...checkSubdomain(path, spec, "runtimeClassName"),
    ...checkOneOf(`${path}.preemptionPolicy`, memberOf(spec, "preemptionPolicy"), ["PreemptLowerPriority", "Never"]),
    ...checkSystem(path, objectAt(spec, "os")),
    ...checkGiven(`${path}.hostnameOverride`, memberOf(spec, "hostnameOverride")),
  ];
}

function checkSystem(path: string, system: JsonObject | undefined): FieldError[] {
  if (system === undefined) return [];
  const name = textAt(system, "name");
  return name === "" ? [requiredError(`${path}.os.name`)] : checkOneOf(`${path}.os`, name, ["linux", "windows"]);
}

function checkSubdomain(path: string, spec: JsonObject, key: string): FieldError[] {
  return checkGivenDomain(`${path}.${key}`, textAt(spec, key));
}

/** Checks how a pod spec at `path` is placed on a Node and when it may start. */
export function checkPlacing(path: string, spec: JsonObject): FieldError[] {
  return [
    ...checkOneOf(`${path}.dnsPolicy`, memberOf(spec, "dnsPolicy"), DNS_POLICIES),
    ...checkLabels(objectAt(spec, "nodeSelector") ?? {}, `${path}.nodeSelector`),
    ...(memberOf(spec, "dnsPolicy") === "None" && memberOf(spec, "dnsConfig") === undefined
      ? [requiredError(`${path}.dnsConfig`, "must provide `dnsConfig` when `dnsPolicy` is None")]
      : []),
    ...objectsAt(spec, "readinessGates").flatMap((gate, index) => {
      const type = textAt(gate, "conditionType");
      return checkQualifiedName(`${path}.readinessGates[${index}].conditionType`, type);
    }),
    ...checkGates(`${path}.schedulingGates`, objectsAt(spec, "schedulingGates")),
    ...checkOverhead(`${path}.overhead`, objectAt(spec, "overhead")),
  ];
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

/** Checks the claims for devices of a pod spec at `path`. */
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

/** Refuses what containers that come later cannot have. */
export function checkEphemeralFields(path: string, container: JsonObject): FieldError[] {
  return NOT_FOR_EPHEMERAL.filter((key) => {
    const value = memberOf(container, key);
    const isEmpty =
      (value === undefined && !wasGivenEmpty(container, key)) ||
      value === "" ||
      (key === "resources" && Object.keys(Object(value)).length === 0);
    return !isEmpty;
  }).map((key) => forbiddenError(`${path}.${key}`, "cannot be set for an Ephemeral Container"));
}

/** Refuses ephemeral containers where there is no Pod yet. */
export function checkNoEphemeral(path: string, spec: JsonObject, detail: string): FieldError[] {
  return (arrayAt(spec, "ephemeralContainers") ?? []).length === 0
    ? []
    : [forbiddenError(`${path}.ephemeralContainers`, detail)];
}

/** Checks the block devices of a container, of which each is a volume of a claim. */
export function checkDevices(path: string, container: JsonObject, volumes: JsonObject[]): FieldError[] {
  const mounts = objectsAt(container, "volumeMounts");
  const [names, paths] = [new Set<string>(), new Set<string>()];
  return objectsAt(container, "volumeDevices").flatMap((device, index) => {
    const at = `${path}.volumeDevices[${index}]`;
    const [name, place] = [textAt(device, "name"), textAt(device, "devicePath")];
    const volume = volumes.find((one) => memberOf(one, "name") === name);
    const isClaim = ["persistentVolumeClaim", "ephemeral"].some((key) => objectAt(volume, key) !== undefined);
    const problem = (key: "name" | "devicePath", when: boolean, detail: string) =>
      when ? [invalidError(`${at}.${key}`, textAt(device, key), detail)] : [];
    const isMounted = (key: string, value: string) => mounts.some((mount) => textAt(mount, key) === value);
    const notAClaim = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
    const errors = [
      ...(name === "" ? [requiredError(`${at}.name`)] : []),
      ...problem("name", names.has(name), "must be unique"),
      ...problem("name", volume !== undefined && !isClaim, notAClaim),
      ...(volume === undefined ? [notFoundError(`${at}.name`, name)] : []),
      ...(place === "" ? [requiredError(`${at}.devicePath`)] : []),
      ...problem("devicePath", paths.has(place), "must be unique"),
      ...problem("devicePath", place.split("/").includes(".."), "can not contain backsteps ('..')"),
      ...problem("name", isMounted("name", name), "must not already exist in volumeMounts"),
      ...problem("devicePath", isMounted("mountPath", place), "must not already exist as a path in volumeMounts"),
    ];
    if (name !== "") names.add(name);
    paths.add(place);
    return errors;
  });
}
