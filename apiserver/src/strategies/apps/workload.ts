// Validation that Deployments, ReplicaSets, StatefulSets, and DaemonSets share.
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { checkLabelSelector, checkNotNegative, goMap, goSelector, selectorMatches } from "../../validation/fields.js";
import { checkPodTemplate, checkTemplateLabels } from "../pod-template/pod-spec.js";

/**
 * Validates the selector and the Pod template of a workload. `checked` replaces the template for its own validation; `claims` are volumes that the
 * controller adds to the Pods.
 */
export function checkSelectorAndTemplate(
  kind: string,
  spec: JsonObject,
  { checked, claims = [] }: { checked?: JsonObject; claims?: JsonObject[] } = {},
): FieldError[] {
  const selector = objectAt(spec, "selector");
  const template = objectAt(spec, "template") ?? {};
  const labels = objectAt(objectAt(template, "metadata"), "labels");
  const isEmpty =
    selector !== undefined &&
    Object.keys(objectAt(selector, "matchLabels") ?? {}).length === 0 &&
    objectsAt(selector, "matchExpressions").length === 0;
  const isReadable = checkLabelSelector("", selector).length === 0;
  const isUnmatched = selector === undefined || (!isEmpty && !selectorMatches(selector, labels ?? {}));
  // kube-apiserver uses this name in the message for ReplicaSets.
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
    // As in kube-apiserver, the template is not validated if the selector is invalid.
    ...(isReadable || kind === "DaemonSet" ? checkPodTemplate("spec.template", checked ?? template, claims) : []),
    // kube-apiserver reports this error twice.
    ...(isReadable && kind === "StatefulSet" ? checkTemplateLabels("spec.template", template) : []),
    ...(isReadable || kind === "DaemonSet" || kind === "StatefulSet" ? checkLasting(kind, template) : []),
  ];
}

/** Formats the parameters of a rolling update as Go prints them. */
export function goRollingUpdate(rolling: JsonObject): JsonObject {
  return {
    MaxUnavailable: memberOf(rolling, "maxUnavailable") ?? null,
    MaxSurge: memberOf(rolling, "maxSurge") ?? null,
  };
}

/** Validation of the counts in the status of a workload (validation.ValidateDeploymentStatus and similar functions, Kubernetes 1.36). */
export interface StatusRule {
  /** Counts that must not be negative. */
  counts: string[];
  /** Counts that must not exceed `replicas`. */
  ofReplicas?: string[];
  /** The limit of availableReplicas, as named in the message. */
  ready?: string;
}

export function checkWorkloadStatus(rule: StatusRule, object: JsonObject, live: JsonObject): FieldError[] {
  const status = objectAt(object, "status") ?? {};
  const { counts, ofReplicas = [], ready } = rule;
  const exceeds = (name: string, limit: string, shown: string): FieldError[] => {
    const count = numberOf(status, name);
    return count > numberOf(status, limit)
      ? [invalidError(`status.${name}`, count, `cannot be greater than ${shown}`)]
      : [];
  };
  return [
    ...counts.flatMap((name) => checkNotNegative(`status.${name}`, memberOf(status, name))),
    ...ofReplicas.flatMap((name) => exceeds(name, "replicas", "status.replicas")),
    ...(ready === undefined ? [] : exceeds("availableReplicas", "readyReplicas", ready)),
    ...(counts.includes(COLLISIONS) ? checkCollisions(status, objectAt(live, "status")) : []),
  ];
}

/** Validates restartPolicy Always and the absence of activeDeadlineSeconds. */
export function checkLasting(kind: string, template: JsonObject): FieldError[] {
  const spec = objectAt(template, "spec");
  const restartPolicy = memberOf(spec, "restartPolicy");
  const path = "spec.template.spec";
  // kube-apiserver uses this name in the message for Deployments.
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

function unreadableError(kind: string, selector: JsonObject): FieldError {
  return invalidError("spec.selector", goSelector(selector), kind === "StatefulSet" ? "" : "invalid label selector");
}

/** Builds the error for template labels that do not match the selector. */
export function mismatchError(metadata: JsonObject | undefined): FieldError {
  const detail = "`selector` does not match template `labels`";
  const empty = wasGivenEmpty(metadata, "labels") ? {} : null;
  const labels = objectAt(metadata, "labels");
  return invalidError("spec.template.metadata.labels", labels === undefined ? empty : goMap(labels), detail);
}

// A string that is neither an integer nor a percentage counts as 0.
export function isZero(value: JsonValue | undefined): boolean {
  return !/^([+-]?[0-9]+|[0-9]+%)$/.test(String(value)) || Number.parseInt(String(value), 10) === 0;
}

/** Sets the default type of an update strategy, and the parameters of RollingUpdate. */
export function defaultRollingUpdate(strategy: JsonObject): void {
  strategy["type"] ??= "RollingUpdate";
  if (strategy["type"] === "RollingUpdate") strategy["rollingUpdate"] ??= {};
}

const COLLISIONS = "collisionCount";

// collisionCount can only increase.
function checkCollisions(status: JsonObject, before: JsonObject | undefined): FieldError[] {
  const [count, old] = [memberOf(status, COLLISIONS), memberOf(before, COLLISIONS)];
  const isLess = typeof old === "number" && (typeof count !== "number" || count < old);
  return isLess ? [invalidError(`status.${COLLISIONS}`, count ?? 0, "cannot be decremented")] : [];
}

function numberOf(status: JsonObject, name: string): number {
  const value = memberOf(status, name);
  return typeof value === "number" ? value : 0;
}
