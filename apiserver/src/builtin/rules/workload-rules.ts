import {
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../errors/field-error.js";
import { deepEqual, memberOf, objectAt, type JsonObject, type JsonValue } from "../../json.js";
import { objectsAt } from "../read-path.js";
import { checkIntOrPercent, checkLabelSelector, checkNotNegative, selectorMatches } from "./field-rules.js";
import { checkPodSpec } from "./pod-rules.js";

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
    ...checkSelectorAndTemplate(kind, spec),
    ...checkStrategy(kind, spec),
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...checkNotNegative("spec.revisionHistoryLimit", memberOf(spec, "revisionHistoryLimit")),
    ...(kind === "Deployment" ? checkDeadline(spec) : []),
    ...checkWorkloadUpdate(kind, spec, objectAt(old, "spec")),
  ];
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
  const claims = objectsAt(spec, "volumeClaimTemplates").map((claim) => objectAt(claim, "metadata") ?? {});
  const restartPolicy = memberOf(objectAt(template, "spec"), "restartPolicy");
  const isEmpty = selector !== undefined && Object.keys(selector).length === 0;
  const isUnmatched = selector === undefined || (!isEmpty && !selectorMatches(selector, labels ?? {}));
  return [
    ...(selector === undefined && kind !== "DaemonSet" ? [requiredError("spec.selector")] : []),
    ...checkLabelSelector("spec.selector", selector),
    ...(isEmpty
      ? [invalidError("spec.selector", {}, `empty selector is invalid for ${kind.toLowerCase()}`)]
      : isUnmatched
        ? [mismatchError(labels)]
        : []),
    ...checkPodSpec("spec.template.spec", objectAt(template, "spec") ?? {}, claims),
    ...(restartPolicy === undefined || restartPolicy === "Always"
      ? []
      : [notSupportedError("spec.template.spec.restartPolicy", restartPolicy, ["Always"])]),
  ];
}

function mismatchError(labels: JsonObject | undefined): FieldError {
  const detail = "`selector` does not match template `labels`";
  return invalidError("spec.template.metadata.labels", labels ?? null, detail);
}

function checkStrategy(kind: string, spec: JsonObject): FieldError[] {
  const strategy = objectAt(spec, kind === "Deployment" ? "strategy" : "updateStrategy");
  const type = memberOf(strategy, "type");
  if (kind === "Deployment" && type === "RollingUpdate")
    return checkRollingUpdate("spec.strategy.rollingUpdate", objectAt(strategy, "rollingUpdate") ?? {});
  if (kind === "StatefulSet" && type === "OnDelete") return checkPartition(objectAt(strategy, "rollingUpdate"));
  if (kind !== "Deployment" || type === undefined) return [];
  if (type !== "Recreate") {
    const shown = { Type: type, RollingUpdate: memberOf(strategy, "rollingUpdate") ?? null };
    return [notSupportedError("spec.strategy", shown, ["Recreate", "RollingUpdate"])];
  }
  if (memberOf(strategy, "rollingUpdate") === undefined) return [];
  const detail = "may not be specified when strategy `type` is 'Recreate'";
  return [forbiddenError("spec.strategy.rollingUpdate", detail)];
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
  const isZero = (value: JsonValue | undefined) => Number.parseInt(String(value), 10) === 0;
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

/** Demands that some members of an object are as they were. */
export function checkImmutable(
  path: string,
  { spec, old, keys }: { spec: JsonObject; old: JsonObject | undefined; keys: string[] },
): FieldError[] {
  if (old === undefined) return [];
  return keys
    .filter((key) => !deepEqual(memberOf(spec, key), memberOf(old, key)))
    .map((key) =>
      invalidError(path === "" ? key : `${path}.${key}`, memberOf(spec, key) ?? null, "field is immutable"),
    );
}
