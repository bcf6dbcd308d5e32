import { compareQuantities } from "@gen-operator/schema";
import {
  duplicateError,
  forbiddenError,
  invalidError,
  notFoundError,
  requiredError,
  type FieldError,
} from "../../../errors/field-error.js";
import { arrayAt, clone, deepEqual, isObject, memberOf, objectAt, type JsonObject } from "../../../json.js";
import { objectsAt } from "../../read-path.js";
import { checkLabelName, checkNotNegative, checkOneOf, checkPort, checkRequired } from "../field-rules.js";

const POD_UPDATE_RULE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
  "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** Checks a pod spec at `path`; absent ones count as empty. `claims` are volumes that it gets from elsewhere. */
export function checkPodSpec(path: string, spec: JsonObject, claims: JsonObject[] = []): FieldError[] {
  const volumes = [...objectsAt(spec, "volumes"), ...claims];
  const containers = objectsAt(spec, "containers");
  return [
    ...checkVolumes(`${path}.volumes`, objectsAt(spec, "volumes")),
    ...(containers.length === 0 ? [requiredError(`${path}.containers`)] : []),
    ...checkContainers(`${path}.containers`, containers, volumes),
    ...checkContainers(`${path}.initContainers`, objectsAt(spec, "initContainers"), volumes),
    ...checkOneOf(`${path}.restartPolicy`, memberOf(spec, "restartPolicy"), ["Always", "OnFailure", "Never"]),
  ];
}

function checkVolumes(path: string, volumes: JsonObject[]): FieldError[] {
  const names = new Set<unknown>();
  return volumes.flatMap((volume, index) => {
    const name = memberOf(volume, "name");
    const field = `${path}[${index}].name`;
    const isTaken = names.has(name);
    names.add(name);
    return isTaken && name !== undefined ? [duplicateError(field, name)] : checkLabelName(field, name);
  });
}

function checkContainers(path: string, containers: JsonObject[], volumes: JsonObject[]): FieldError[] {
  const names = new Set<unknown>();
  return containers.flatMap((container, index) => {
    const at = `${path}[${index}]`;
    const name = memberOf(container, "name");
    const isTaken = name !== undefined && name !== "" && names.has(name);
    names.add(name);
    return [
      ...(isTaken ? [duplicateError(`${at}.name`, name)] : checkLabelName(`${at}.name`, name)),
      ...checkRequired(`${at}.image`, memberOf(container, "image")),
      ...objectsAt(container, "ports").flatMap((port, place) => checkContainerPort(`${at}.ports[${place}]`, port)),
      ...objectsAt(container, "env").flatMap((variable, place) =>
        checkRequired(`${at}.env[${place}].name`, memberOf(variable, "name")),
      ),
      ...objectsAt(container, "volumeMounts").flatMap((mount, place) =>
        checkMount(`${at}.volumeMounts[${place}]`, mount, volumes),
      ),
      ...checkOneOf(`${at}.imagePullPolicy`, memberOf(container, "imagePullPolicy"), [
        "Always",
        "IfNotPresent",
        "Never",
      ]),
      ...checkResources(`${at}.resources`, objectAt(container, "resources")),
    ];
  });
}

function checkContainerPort(path: string, port: JsonObject): FieldError[] {
  const number = memberOf(port, "containerPort");
  const isMissing = number === undefined || number === 0;
  return [
    ...(isMissing ? [requiredError(`${path}.containerPort`)] : checkPort(`${path}.containerPort`, number)),
    ...checkOneOf(`${path}.protocol`, memberOf(port, "protocol"), ["SCTP", "TCP", "UDP"]),
  ];
}

function checkMount(path: string, mount: JsonObject, volumes: JsonObject[]): FieldError[] {
  const name = memberOf(mount, "name") ?? "";
  const isKnown = volumes.some((volume) => memberOf(volume, "name") === name);
  return [
    ...(name === "" ? [requiredError(`${path}.name`)] : isKnown ? [] : [notFoundError(`${path}.name`, name)]),
    ...checkRequired(`${path}.mountPath`, memberOf(mount, "mountPath")),
  ];
}

function checkResources(path: string, resources: JsonObject | undefined): FieldError[] {
  const limits = objectAt(resources, "limits") ?? {};
  const requests = objectAt(resources, "requests") ?? {};
  const negative = (list: string, amounts: JsonObject) =>
    Object.entries(amounts)
      .filter(([, amount]) => String(amount).startsWith("-"))
      .map(([name, amount]) => invalidError(`${path}.${list}[${name}]`, amount, "must be greater than or equal to 0"));
  const excessive = Object.entries(requests).flatMap(([name, request]) => {
    const limit = memberOf(limits, name);
    if (limit === undefined || (compareQuantities(String(request), String(limit)) ?? 0) <= 0) return [];
    return [
      invalidError(`${path}.requests`, request, `must be less than or equal to ${name} limit of ${String(limit)}`),
    ];
  });
  return [...negative("limits", limits), ...negative("requests", requests), ...excessive];
}

/** Checks a Pod, and on update that it only changes what a Pod may change. */
export function checkPod(pod: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(pod, "spec") ?? {};
  const errors = [
    ...checkPodSpec("spec", spec),
    ...checkNotNegative("spec.activeDeadlineSeconds", memberOf(spec, "activeDeadlineSeconds")),
  ];
  const oldSpec = objectAt(old, "spec");
  if (oldSpec === undefined) return errors;
  const changed = ["containers", "initContainers"].find(
    (list) => objectsAt(spec, list).length !== objectsAt(oldSpec, list).length,
  );
  if (changed !== undefined)
    return [...errors, forbiddenError(`spec.${changed}`, "pod updates may not add or remove containers")];
  const late = checkDeadlineKept(spec, oldSpec);
  if (late.length > 0) return [...errors, ...late];
  if (deepEqual(fixedPart(spec, oldSpec), fixedPart(oldSpec, oldSpec))) return errors;
  return [...errors, forbiddenError("spec", POD_UPDATE_RULE)];
}

function checkDeadlineKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const path = "spec.activeDeadlineSeconds";
  const [now, before] = [memberOf(spec, "activeDeadlineSeconds"), memberOf(old, "activeDeadlineSeconds")];
  if (typeof before !== "number" || now === before) return [];
  if (typeof now !== "number")
    return [invalidError(path, null, "must not update from a positive integer to nil value")];
  return now > before ? [invalidError(path, now, "must be less than or equal to previous value")] : [];
}

function fixedPart(spec: JsonObject, old: JsonObject): JsonObject {
  const { activeDeadlineSeconds: _deadline, tolerations: _added, terminationGracePeriodSeconds: grace, ...rest } = spec;
  const fixed = clone(rest);
  // What was negative counts as 1.
  const wasNegative = Number(memberOf(old, "terminationGracePeriodSeconds") ?? 0) < 0;
  if (grace !== undefined && !(wasNegative && (grace === 1 || Number(grace) < 0)))
    fixed["terminationGracePeriodSeconds"] = grace;
  for (const list of ["containers", "initContainers"]) {
    for (const container of (arrayAt(fixed, list) ?? []).filter(isObject)) delete container["image"];
  }
  return fixed;
}
