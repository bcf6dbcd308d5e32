import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, WHOLE, forbiddenError, invalidError } from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  clone,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  stringAt,
} from "../../json.js";
import { checkRequired, goMap } from "../../validation/fields.js";
import { checkImage } from "../pod-template/containers.js";
import { checkNoEphemeral } from "../pod-template/pod-fields.js";
import { checkPodSpec } from "../pod-template/pod-spec.js";
import {
  checkProfileAnnotations,
  checkProfilesKept,
  checkProfilesMatch,
  isMirror,
} from "../pod-template/profile-annotations.js";
import { checkTolerations } from "../pod-template/scheduling.js";

/** Validates a create or update of a Pod. */
export function checkNewPod(pod: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(pod, "spec") ?? {};
  return [
    ...checkPod(pod, old),
    ...(old === undefined ? [...checkNewSpec(spec), ...checkProfilesMatch("spec", pod)] : []),
  ];
}

function checkNewSpec(spec: JsonObject): FieldError[] {
  const isHeld = textAt(spec, "nodeName") !== "" && objectsAt(spec, "schedulingGates").length > 0;
  return [
    ...checkNoEphemeral("spec", spec, "cannot be set on create"),
    ...(isHeld ? [forbiddenError("spec.nodeName", "cannot be set until all schedulingGates have been cleared")] : []),
  ];
}

// Only for Pods, not for Pod templates.
function checkImages(spec: JsonObject): FieldError[] {
  return ["initContainers", "containers"].flatMap((list) =>
    objectsAt(spec, list).flatMap((container, index) => checkImage(`spec.${list}[${index}]`, container)),
  );
}

/** Validates a Pod and, on update, that only mutable fields have changed. */
export function checkPod(pod: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(pod, "spec") ?? {};
  const ofAnnotations = checkProfileAnnotations("metadata.annotations", pod);
  const errors = [
    ...ofAnnotations,
    ...checkPodSpec("spec", spec, { pod: { isPod: true, name: textAt(pod, "metadata.name") } }),
    ...checkTokens(spec),
    ...checkImages(spec),
    // On update, kube-apiserver validates annotations twice.
    ...(old === undefined ? [] : [...checkProfilesKept(pod, old), ...ofAnnotations]),
  ];
  const oldSpec = objectAt(old, "spec");
  return oldSpec === undefined ? errors : [...errors, ...checkPodUpdate(spec, oldSpec)];
}

// A token projection requires a service account.
function checkTokens(spec: JsonObject): FieldError[] {
  if (textAt(spec, "serviceAccountName") !== "") return [];
  const detail = "must not be specified when serviceAccountName is not set";
  return objectsAt(spec, "volumes").flatMap((volume, index) =>
    objectsAt(volume, "projected.sources").flatMap((source, place) =>
      objectAt(source, "serviceAccountToken") === undefined
        ? []
        : [forbiddenError(`spec.volumes[${index}].projected.sources[${place}].serviceAccountToken`, detail)],
    ),
  );
}

const MAX_INT = 2_147_483_647;

const POD_UPDATE_RULE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
  "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** Validates that only mutable fields of a Pod have changed. */
function checkPodUpdate(spec: JsonObject, old: JsonObject): FieldError[] {
  const changed = ["containers", "initContainers"].find(
    (list) => objectsAt(spec, list).length !== objectsAt(old, list).length,
  );
  // kube-apiserver validates images again, up to the first list whose length has changed.
  const lists = ["containers", "initContainers"].slice(0, changed === undefined ? 2 : changed === "containers" ? 0 : 1);
  const images = lists.flatMap((list) =>
    objectsAt(spec, list).flatMap((container, index) => [
      ...checkRequired(`spec.${list}[${index}].image`, container["image"]),
      ...checkImage(`spec.${list}[${index}]`, container),
    ]),
  );
  if (changed !== undefined)
    return [...images, forbiddenError(`spec.${changed}`, "pod updates may not add or remove containers")];
  const late = checkDeadlineKept(spec, old);
  if (late.length > 0 && typeof memberOf(spec, "activeDeadlineSeconds") === "number") return [...images, ...late];
  const isHeld = objectsAt(old, "schedulingGates").length > 0;
  const [now, before] = [spec, old].map((one) => fixedPart(one, old, { isHeld }));
  return [
    ...images,
    ...late,
    ...checkTolerationsKept(spec, old),
    ...checkGatesKept(spec, old),
    ...(isHeld ? checkPlaceNarrowed(spec, old) : []),
    ...(deepEqual(now ?? null, before ?? null) ? [] : [forbiddenError("spec", POD_UPDATE_RULE)]),
  ];
}

function checkDeadlineKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const path = "spec.activeDeadlineSeconds";
  const [now, before] = [memberOf(spec, "activeDeadlineSeconds"), memberOf(old, "activeDeadlineSeconds")];
  if (typeof now === "number" && (now < 0 || now > MAX_INT))
    return [invalidError(path, now, `must be between 0 and ${MAX_INT}, inclusive`)];
  if (typeof before !== "number" || now === before) return [];
  if (typeof now !== "number")
    return [invalidError(path, null, "must not update from a positive integer to nil value")];
  return now > before ? [invalidError(path, now, "must be less than or equal to previous value")] : [];
}

// Only tolerationSeconds of existing tolerations may change.
function checkTolerationsKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const lasting = ({ tolerationSeconds: _seconds, ...rest }: JsonObject) => rest;
  const now = objectsAt(spec, "tolerations").map(lasting);
  const isKept = objectsAt(old, "tolerations").every((one) => now.some((other) => deepEqual(lasting(one), other)));
  const detail = "existing toleration can not be modified except its tolerationSeconds";
  return isKept ? checkTolerations("spec", spec) : [forbiddenError("spec.tolerations", detail)];
}

function checkGatesKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const before = objectsAt(old, "schedulingGates").map((gate) => textAt(gate, "name"));
  return objectsAt(spec, "schedulingGates").flatMap((gate, index) => {
    const name = textAt(gate, "name");
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return before.includes(name) ? [] : [forbiddenError(`spec.schedulingGates[${index}].name`, detail)];
  });
}

/** Validates that node constraints of a gated Pod only become stricter. */
function checkPlaceNarrowed(spec: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [spec, old].map((one) => objectAt(one, "nodeSelector") ?? {}) as [JsonObject, JsonObject];
  const isKept = Object.entries(before).every(([key, value]) => memberOf(now, key) === value);
  const detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
  const selector = objectAt(spec, "nodeSelector");
  const shown = selector === undefined ? null : goMap(selector);
  return [...(isKept ? [] : [invalidError("spec.nodeSelector", shown, detail)]), ...checkTermsNarrowed(spec, old)];
}

const TERMS = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

function checkTermsNarrowed(spec: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [spec, old].map((one) => objectsAt(one, `affinity.${TERMS}`)) as [JsonObject[], JsonObject[]];
  const field = `spec.affinity.${TERMS}`;
  if (before.length > 0 && before.length !== now.length) {
    const shown = at(spec, `affinity.${TERMS}`) === undefined ? null : now.map(goTerm);
    return [invalidError(field, shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")];
  }
  return before.flatMap((term, index) => {
    const other = now[index] ?? {};
    if (isNarrowed(other, term)) return [];
    return [
      invalidError(`${field}[${index}]`, goTerm(other), "only additions are allowed (no mutations or deletions)"),
    ];
  });
}

const PARTS = ["matchExpressions", "matchFields"];

function isNarrowed(now: JsonObject, before: JsonObject): boolean {
  const isEmpty = PARTS.every((part) => objectsAt(before, part).length === 0);
  if (isEmpty) return PARTS.every((part) => objectsAt(now, part).length === 0);
  return PARTS.every((part) => {
    const kept = objectsAt(before, part);
    return deepEqual(objectsAt(now, part).slice(0, kept.length), kept);
  });
}

// kube-apiserver prints Go structs, with their fields in order.
function goTerm(term: JsonObject): JsonObject {
  const [expressions, fields] = PARTS.map((part): JsonValue => {
    if (arrayAt(term, part) === undefined) return null;
    return objectsAt(term, part).map(({ key = "", operator = "", values = null }) => ({
      ...{ Key: key, Operator: operator, Values: values },
    }));
  });
  return { MatchExpressions: expressions ?? null, MatchFields: fields ?? null };
}

function fixedPart(spec: JsonObject, old: JsonObject, { isHeld }: { isHeld: boolean }): JsonObject {
  const {
    activeDeadlineSeconds: _deadline,
    tolerations: _added,
    schedulingGates: _gates,
    terminationGracePeriodSeconds: grace,
    ...rest
  } = spec;
  const fixed = clone(rest);
  // A negative grace period may be changed to 1.
  const wasNegative = Number(memberOf(old, "terminationGracePeriodSeconds") ?? 0) < 0;
  if (grace !== undefined && !(wasNegative && (grace === 1 || Number(grace) < 0)))
    fixed["terminationGracePeriodSeconds"] = grace;
  for (const list of ["containers", "initContainers"]) {
    for (const container of (arrayAt(fixed, list) ?? []).filter(isObject)) delete container["image"];
  }
  if (isHeld) settleNodes(fixed, old);
  return fixed;
}

// Neutralizes the mutable node constraints before the comparison. An affinity that contains only nodeAffinity may be new.
function settleNodes(spec: JsonObject, old: JsonObject): void {
  delete spec["nodeSelector"];
  const [affinity, before] = [spec, old].map((one) => objectAt(one, "affinity"));
  const [nodes, nodesBefore] = [affinity, before].map((one) => objectAt(one, "nodeAffinity") ?? null);
  if (deepEqual(nodes ?? null, nodesBefore ?? null)) return;
  const { nodeAffinity: _nodes, ...others } = affinity ?? {};
  if (before === undefined && Object.keys(others).length === 0) delete spec["affinity"];
  else spec["affinity"] = { ...others, ...(nodesBefore ? { nodeAffinity: nodesBefore } : {}) };
}

function checkEphemeralKept(object: JsonObject, live: JsonObject): FieldError[] {
  const containersOf = (pod: JsonObject) =>
    (arrayAt(objectAt(pod, "spec"), "ephemeralContainers") ?? []).filter(isObject);
  const path = "spec.ephemeralContainers";
  const given = containersOf(object);
  return [
    ...containersOf(live).flatMap((before) => {
      const name = stringAt(before, "name") ?? "";
      const now = given.find((container) => container["name"] === name);
      if (now === undefined)
        return [forbiddenError(path, `existing ephemeral containers ${quote(name)} may not be removed\n`)];
      if (deepEqual(now, before)) return [];
      return [forbiddenError(path, `existing ephemeral containers ${quote(name)} may not be changed`)];
    }),
  ];
}

/** Validates an update of ephemeral containers. */
export function checkEphemeralContainers(pod: JsonObject, old: JsonObject): FieldError[] {
  return isMirror(old)
    ? [forbiddenError(WHOLE, "static pods do not support ephemeral containers")]
    : [...checkPod(pod, undefined), ...checkEphemeralKept(pod, old)];
}
