import {
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../errors/field-error.js";
import { deepEqual, isObject, memberOf, objectAt, type JsonObject, type JsonValue } from "../../json.js";
import { objectsAt } from "../read-path.js";
import { checkNotNegative, checkOneOf, selectorMatches } from "./field-rules.js";
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
    ...checkWorkloadUpdate(kind, spec, objectAt(old, "spec")),
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
  if (kind !== "Deployment" || type === undefined || type === "RollingUpdate") return [];
  if (type !== "Recreate") {
    const shown = { Type: type, RollingUpdate: memberOf(strategy, "rollingUpdate") ?? null };
    return [notSupportedError("spec.strategy", shown, ["Recreate", "RollingUpdate"])];
  }
  if (memberOf(strategy, "rollingUpdate") === undefined) return [];
  const detail = "may not be specified when strategy `type` is 'Recreate'";
  return [forbiddenError("spec.strategy.rollingUpdate", detail)];
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

/** Checks a Job. */
export function checkJob(job: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(job, "spec") ?? {};
  const keys = ["selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"];
  const isIndexed = memberOf(spec, "completionMode") === "Indexed";
  return [
    ...checkJobSpec("spec", spec),
    ...checkImmutable("spec", {
      spec: withoutMutableScheduling(spec),
      old: old === undefined ? undefined : withoutMutableScheduling(objectAt(old, "spec") ?? {}),
      keys: isIndexed ? keys : [...keys, "completions"],
    }),
  ];
}

// A suspended Job may still change where its pods run.
function withoutMutableScheduling(spec: JsonObject): JsonObject {
  const template = objectAt(spec, "template");
  if (spec["suspend"] !== true || template === undefined) return spec;
  const {
    nodeSelector: _node,
    affinity: _affinity,
    tolerations: _tolerations,
    schedulingGates: _gates,
    ...pod
  } = objectAt(template, "spec") ?? {};
  const { metadata: _metadata, ...rest } = template;
  return { ...spec, template: { ...rest, spec: pod } };
}

function checkJobSpec(path: string, spec: JsonObject): FieldError[] {
  const pod = objectAt(objectAt(spec, "template"), "spec") ?? {};
  const counts = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
  const restartPolicy = memberOf(pod, "restartPolicy");
  const isRestarting = restartPolicy === undefined || restartPolicy === "Always";
  return [
    ...counts.flatMap((key) => checkNotNegative(`${path}.${key}`, memberOf(spec, key))),
    ...checkPodSpec(`${path}.template.spec`, pod),
    ...(isRestarting
      ? [requiredError(`${path}.template.spec.restartPolicy`, 'valid values: "OnFailure", "Never"')]
      : []),
  ];
}

/** Checks a CronJob; its schedule must have five fields or be a descriptor such as `@daily`. */
export function checkCronJob(cronJob: JsonObject): FieldError[] {
  const spec = objectAt(cronJob, "spec") ?? {};
  return [
    ...checkSchedule(memberOf(spec, "schedule")),
    ...checkOneOf("spec.concurrencyPolicy", memberOf(spec, "concurrencyPolicy"), ["Allow", "Forbid", "Replace"]),
    ...checkJobSpec("spec.jobTemplate.spec", objectAt(objectAt(spec, "jobTemplate"), "spec") ?? {}),
  ];
}

function checkSchedule(schedule: JsonValue | undefined): FieldError[] {
  if (typeof schedule !== "string" || schedule === "") return [requiredError("spec.schedule")];
  const fields = schedule.trim().split(/\s+/);
  if (schedule.startsWith("@") || fields.length === 5) return [];
  const detail = `expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`;
  return [invalidError("spec.schedule", schedule, detail)];
}

/** Checks a HorizontalPodAutoscaler. */
export function checkAutoscaler(autoscaler: JsonObject): FieldError[] {
  const spec = objectAt(autoscaler, "spec") ?? {};
  const [min, max] = [memberOf(spec, "minReplicas"), memberOf(spec, "maxReplicas")];
  const target = objectAt(spec, "scaleTargetRef");
  const isTooSmall = typeof max === "number" && typeof min === "number" && max < min;
  return [
    ...(typeof max === "number" && max >= 1
      ? []
      : [requiredError("spec.maxReplicas", "must be set and greater than 0")]),
    ...(isTooSmall ? [invalidError("spec.maxReplicas", max, "must be greater than or equal to `minReplicas`")] : []),
    ...["kind", "name"].flatMap((key) =>
      isObject(target) && (memberOf(target, key) ?? "") !== "" ? [] : [requiredError(`spec.scaleTargetRef.${key}`)],
    ),
  ];
}
