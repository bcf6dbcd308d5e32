// APIServices: an API group version is served locally or by a Service.
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { now } from "../../object/object-meta.js";
import { checkGivenDomain, checkOneOf, checkPort, checkRequired } from "../../validation/fields.js";
import { dns1035Problems, pathSegmentProblems } from "../../validation/names.js";
import type { Strategy } from "../strategy.js";

export const apiServiceStrategy: Strategy = {
  nameRule: "path-segment",
  checksMetadata: ["object", "change"],
  allowsUnconditionalUpdate: false,
  checksFinalizers: false,
  prepareForCreate: markLocal,
  validate: checkApiService,
  validateStatus: checkApiServiceStatus,
  warnings: () => NOT_PROXIED,
  statusWarnings: () => NOT_PROXIED,
};

const NOT_PROXIED = ["APIService: the embedded API server stores it but does not proxy requests to its service"];

// Local API groups are available immediately.
function markLocal(apiService: JsonObject): void {
  if (objectAt(objectAt(apiService, "spec"), "service") !== undefined) return;
  const own = { reason: "Local", message: "Local APIServices are always available" };
  apiService["status"] = {
    conditions: [{ type: "Available", status: "True", lastTransitionTime: now(), ...own }],
  };
}

const MAX_GROUP_PRIORITY = 20_000;
const MAX_VERSION_PRIORITY = 1000;

function checkApiService(object: JsonObject): FieldError[] {
  const spec = objectAt(object, "spec") ?? {};
  const [group, version] = [textAt(spec, "group"), textAt(spec, "version")];
  return [
    ...checkName(object, `${version}.${group}`),
    ...(group === "" && version !== "v1"
      ? [requiredError("spec.group", "only v1 may have an empty group and it better be legacy kube")]
      : []),
    ...checkGivenDomain("spec.group", group),
    ...dns1035Problems(version).map((problem) => invalidError("spec.version", version, problem)),
    ...checkPriority("spec.groupPriorityMinimum", memberOf(spec, "groupPriorityMinimum"), MAX_GROUP_PRIORITY),
    ...checkPriority("spec.versionPriority", memberOf(spec, "versionPriority"), MAX_VERSION_PRIORITY),
    ...checkServer(spec),
  ];
}

function checkName(object: JsonObject, wanted: string): FieldError[] {
  return ["generateName", "name"].flatMap((member) => {
    const [field, name] = [`metadata.${member}`, textAt(object, `metadata.${member}`)];
    if (name === "" || name === wanted || pathSegmentProblems(name).length > 0) return [];
    return [invalidError(field, name, `must be \`spec.version+"."+spec.group\`: ${quote(wanted)}`)];
  });
}

function checkPriority(field: string, given: unknown, max: number): FieldError[] {
  const priority = Number(given ?? 0);
  return priority > 0 && priority <= max
    ? []
    : [invalidError(field, priority, `must be positive and less than ${max}`)];
}

function checkServer(spec: JsonObject): FieldError[] {
  const [service, isUnchecked] = [objectAt(spec, "service"), memberOf(spec, UNCHECKED) === true];
  const authority = Buffer.from(textAt(spec, "caBundle"), "base64");
  if (service === undefined)
    return [
      ...(authority.length === 0
        ? []
        : [invalidError("spec.caBundle", `${authority.length} bytes`, "local APIServices may not have a caBundle")]),
      ...(isUnchecked ? [invalidError(`spec.${UNCHECKED}`, true, `local APIServices may not have ${UNCHECKED}`)] : []),
    ];
  const port = memberOf(service, "port") ?? 0;
  return [
    ...["namespace", "name"].flatMap((key) => checkRequired(`spec.service.${key}`, textAt(service, key))),
    ...(checkPort("", port).length === 0
      ? []
      : [invalidError("spec.service.port", port, "port is not valid: must be between 1 and 65535, inclusive")]),
    ...(isUnchecked && authority.length > 0
      ? [invalidError(`spec.${UNCHECKED}`, true, "may not be true if caBundle is present")]
      : []),
  ];
}

const UNCHECKED = "insecureSkipTLSVerify";

/** Validates the status of an APIService. */
function checkApiServiceStatus(object: JsonObject): FieldError[] {
  return objectsAt(object, "status.conditions").flatMap((condition, index) =>
    checkOneOf(`status.conditions[${index}].status`, textAt(condition, "status"), ["True", "False", "Unknown"]),
  );
}
