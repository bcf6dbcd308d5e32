import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, deepEqual, memberOf, objectAt } from "../../json.js";
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  checkImmutable,
  checkIntOrPercent,
  checkLabel,
  checkLabelSelector,
  checkNotNegative,
  checkOneOf,
  goMap,
  goSelector,
  selectorMatches,
} from "../../validation/fields.js";
import { checkPodTemplate, checkTemplateLabels } from "../pod-template/pod-spec.js";
import { checkClaimSpec } from "../core/persistent-volume-claim.js";

const STATEFUL_SET_MUTABLE = [
  ...["replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"],
  ...["persistentVolumeClaimRetentionPolicy", "minReadySeconds"],
];
const STATEFUL_SET_RULE =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', " +
  "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/** Checks a Deployment, ReplicaSet, StatefulSet or DaemonSet. */
export function checkWorkload(kind: string, object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(object, "spec") ?? {};
  return [
    ...checkNotNegative("spec.replicas", memberOf(spec, "replicas")),
    ...(kind === "StatefulSet" && old === undefined ? checkClaimTemplates(spec) : []),
    ...(kind === "StatefulSet" ? checkIdentity(spec, { isNew: old === undefined }) : []),
    ...checkSelectorAndTemplate(kind, spec),
    ...checkStrategy(kind, spec),
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...(kind === "StatefulSet"
      ? []
      : checkNotNegative("spec.revisionHistoryLimit", memberOf(spec, "revisionHistoryLimit"))),
    ...(kind === "Deployment" ? checkDeadline(spec) : []),
    ...(kind === "StatefulSet" ? checkPodManagement(memberOf(spec, "podManagementPolicy")) : []),
    ...checkWorkloadUpdate(kind, spec, objectAt(old, "spec")),
  ];
}

function checkPodManagement(policy: JsonValue | undefined): FieldError[] {
  if (policy === undefined || policy === "OrderedReady" || policy === "Parallel") return [];
  return [invalidError("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")];
}

function checkDeadline(spec: JsonObject): FieldError[] {
  const deadline = memberOf(spec, "progressDeadlineSeconds");
  const ready = memberOf(spec, "minReadySeconds") ?? 0;
  const isTooShort = typeof deadline === "number" && typeof ready === "number" && deadline <= ready;
  return [
    ...checkNotNegative("spec.progressDeadlineSeconds", deadline),
    ...(isTooShort
      ? [invalidError("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")]
      : []),
  ];
}

function checkSelectorAndTemplate(kind: string, spec: JsonObject): FieldError[] {
  const selector = objectAt(spec, "selector");
  const template = objectAt(spec, "template") ?? {};
  const labels = objectAt(objectAt(template, "metadata"), "labels");
  const claims = kind === "StatefulSet" ? claimVolumesOf(spec) : [];
  const isEmpty =
    selector !== undefined &&
    Object.keys(objectAt(selector, "matchLabels") ?? {}).length === 0 &&
    objectsAt(selector, "matchExpressions").length === 0;
  const isReadable = checkLabelSelector("", selector).length === 0;
  const isUnmatched = selector === undefined || (!isEmpty && !selectorMatches(selector, labels ?? {}));
  // As Kubernetes has it.
  const named = kind === "ReplicaSet" ? "deployment" : kind.toLowerCase();
  return [
    ...(selector === undefined && kind !== "DaemonSet" ? [requiredError("spec.selector")] : []),
    ...checkLabelSelector("spec.selector", selector),
    ...(isEmpty
      ? [invalidError("spec.selector", {}, `empty selector is invalid for ${named}`)]
      : isUnmatched && isReadable
        ? [mismatchError(objectAt(template, "metadata"))]
        : []),
    ...(isReadable || kind === "DaemonSet" ? [] : [unreadableError(kind, selector ?? {})]),
    // What selects nothing readable has no template to look at.
    ...(isReadable || kind === "DaemonSet"
      ? checkPodTemplate("spec.template", kind === "StatefulSet" ? withoutNames(template) : template, claims)
      : []),
    // Kubernetes says it twice.
    ...(isReadable && kind === "StatefulSet" ? checkTemplateLabels("spec.template", template) : []),
    ...(isReadable || kind === "DaemonSet" || kind === "StatefulSet" ? checkLasting(kind, template) : []),
  ];
}

// The Pods of a StatefulSet get these from elsewhere.
function withoutNames(template: JsonObject): JsonObject {
  const { subdomain: _subdomain, hostname: _hostname, ...spec } = objectAt(template, "spec") ?? {};
  return { ...template, spec };
}

/** Demands that the Pods of a template run until they are deleted. */
export function checkLasting(kind: string, template: JsonObject): FieldError[] {
  const spec = objectAt(template, "spec");
  const restartPolicy = memberOf(spec, "restartPolicy");
  const path = "spec.template.spec";
  // As Kubernetes has it.
  const named = kind === "Deployment" ? "ReplicaSet" : kind;
  return [
    ...(restartPolicy === undefined || restartPolicy === "Always"
      ? []
      : [notSupportedError(`${path}.restartPolicy`, restartPolicy, ["Always"])]),
    ...(memberOf(spec, "activeDeadlineSeconds") === undefined
      ? []
      : [forbiddenError(`${path}.activeDeadlineSeconds`, `activeDeadlineSeconds in ${named} is not Supported`)]),
  ];
}

// How the Pods of a StatefulSet are called, and what becomes of their claims. A name that was stored stays as it is.
function checkIdentity(spec: JsonObject, { isNew }: { isNew: boolean }): FieldError[] {
  const name = textAt(spec, "serviceName");
  const retention = objectAt(spec, "persistentVolumeClaimRetentionPolicy");
  return [
    ...["whenDeleted", "whenScaled"].flatMap((key) =>
      checkOneOf(`spec.persistentVolumeClaimRetentionPolicy.${key}`, memberOf(retention, key), ["Retain", "Delete"]),
    ),
    ...checkNotNegative("spec.ordinals.start", memberOf(objectAt(spec, "ordinals"), "start")),
    ...(isNew && name !== "" ? checkLabel("spec.serviceName", name) : []),
  ];
}

// A claim that was stored stays as it is.
function checkClaimTemplates(spec: JsonObject): FieldError[] {
  return objectsAt(spec, "volumeClaimTemplates").flatMap((claim, index) =>
    checkClaimSpec(`spec.volumeClaimTemplates[${index}].spec`, objectAt(claim, "spec") ?? {}),
  );
}

/** Returns the volumes that the Pods of a StatefulSet get for its claims. */
function claimVolumesOf(spec: JsonObject): JsonObject[] {
  const names = objectsAt(spec, "volumeClaimTemplates").map((claim) => textAt(claim, "metadata.name"));
  return [...new Set(names)].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
}

function unreadableError(kind: string, selector: JsonObject): FieldError {
  return invalidError("spec.selector", goSelector(selector), kind === "StatefulSet" ? "" : "invalid label selector");
}

/** What a selector does not select has these labels. */
export function mismatchError(metadata: JsonObject | undefined): FieldError {
  const detail = "`selector` does not match template `labels`";
  const empty = wasGivenEmpty(metadata, "labels") ? {} : null;
  const labels = objectAt(metadata, "labels");
  return invalidError("spec.template.metadata.labels", labels === undefined ? empty : goMap(labels), detail);
}

function checkStrategy(kind: string, spec: JsonObject): FieldError[] {
  const strategy = objectAt(spec, kind === "Deployment" ? "strategy" : "updateStrategy");
  const type = memberOf(strategy, "type");
  if (kind === "Deployment" && type === "RollingUpdate")
    return checkRollingUpdate("spec.strategy.rollingUpdate", objectAt(strategy, "rollingUpdate") ?? {});
  const rolling = objectAt(strategy, "rollingUpdate");
  const unknown = { Type: type ?? "", RollingUpdate: rolling === undefined ? null : goFields(kind, rolling) };
  if (kind === "StatefulSet" && type !== undefined && type !== "OnDelete" && type !== "RollingUpdate")
    return [invalidError("spec.updateStrategy", unknown, "must be 'RollingUpdate' or 'OnDelete'")];
  if (kind === "DaemonSet" && type === "RollingUpdate")
    return checkDaemonUpdate(objectAt(strategy, "rollingUpdate") ?? {});
  if (kind === "DaemonSet" && type !== undefined && type !== "OnDelete")
    return [notSupportedError("spec.updateStrategy", unknown, ["RollingUpdate", "OnDelete"])];
  if (kind === "StatefulSet" && type === "OnDelete") return checkPartition(rolling);
  if (kind === "StatefulSet" && type === "RollingUpdate")
    return checkNotNegative("spec.updateStrategy.rollingUpdate.partition", memberOf(rolling, "partition"));
  if (kind !== "Deployment" || type === undefined) return [];
  if (type !== "Recreate") {
    return [notSupportedError("spec.strategy", unknown, ["Recreate", "RollingUpdate"])];
  }
  if (memberOf(strategy, "rollingUpdate") === undefined) return [];
  const detail = "may not be specified when strategy `type` is 'Recreate'";
  return [forbiddenError("spec.strategy.rollingUpdate", detail)];
}

// Kubernetes prints the fields of its structs, in their order.
function goFields(kind: string, rolling: JsonObject): JsonObject {
  const unavailable = memberOf(rolling, "maxUnavailable") ?? null;
  if (kind === "StatefulSet") return { Partition: memberOf(rolling, "partition") ?? 0, MaxUnavailable: unavailable };
  return { MaxUnavailable: unavailable, MaxSurge: memberOf(rolling, "maxSurge") ?? null };
}

// What is neither a number nor a percentage counts for nothing.
function isZero(value: JsonValue | undefined): boolean {
  return !/^([+-]?[0-9]+|[0-9]+%)$/.test(String(value)) || Number.parseInt(String(value), 10) === 0;
}

function checkDaemonUpdate(parameters: JsonObject): FieldError[] {
  const path = "spec.updateStrategy.rollingUpdate";
  const [unavailable, surge] = ["maxUnavailable", "maxSurge"].map((key) => memberOf(parameters, key) ?? 0);
  return [
    ...checkIntOrPercent(`${path}.maxUnavailable`, unavailable, { max: 100 }),
    ...checkIntOrPercent(`${path}.maxSurge`, surge, { max: 100 }),
    ...(isZero(unavailable) && isZero(surge)
      ? [requiredError(`${path}.maxUnavailable`, "cannot be 0 when maxSurge is 0")]
      : []),
    ...(isZero(unavailable) || isZero(surge)
      ? []
      : [invalidError(`${path}.maxSurge`, surge ?? 0, "may not be set when maxUnavailable is non-zero")]),
  ];
}

function checkPartition(rollingUpdate: JsonObject | undefined): FieldError[] {
  if (rollingUpdate === undefined) return [];
  const shown = {
    Partition: memberOf(rollingUpdate, "partition") ?? 0,
    MaxUnavailable: memberOf(rollingUpdate, "maxUnavailable") ?? null,
  };
  const detail = "only allowed for updateStrategy 'RollingUpdate'";
  return [invalidError("spec.updateStrategy.rollingUpdate", shown, detail)];
}

function checkRollingUpdate(path: string, parameters: JsonObject): FieldError[] {
  const [unavailable, surge] = ["maxUnavailable", "maxSurge"].map((key) => memberOf(parameters, key) ?? 0);
  return [
    ...checkIntOrPercent(`${path}.maxUnavailable`, unavailable, { max: 100 }),
    ...checkIntOrPercent(`${path}.maxSurge`, surge),
    ...(isZero(unavailable) && isZero(surge)
      ? [invalidError(`${path}.maxUnavailable`, unavailable ?? 0, "may not be 0 when `maxSurge` is 0")]
      : []),
  ];
}

function checkWorkloadUpdate(kind: string, spec: JsonObject, old: JsonObject | undefined): FieldError[] {
  if (old === undefined) return [];
  if (kind !== "StatefulSet") return checkImmutable("spec", { spec, old, keys: ["selector"] });
  const fixed = (of: JsonObject) =>
    Object.fromEntries(Object.entries(of).filter(([key]) => !STATEFUL_SET_MUTABLE.includes(key)));
  return deepEqual(fixed(spec), fixed(old)) ? [] : [forbiddenError("spec", STATEFUL_SET_RULE)];
}
