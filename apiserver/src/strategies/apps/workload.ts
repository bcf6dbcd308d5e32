// What Deployments, ReplicaSets, StatefulSets and DaemonSets have in common.
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

/** Checks the selector and the pod template of a workload. `checked` is what is checked of the template, and `claims` are volumes that the Pods get from elsewhere. */
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
    // The template is not checked if its selector is invalid.
    ...(isReadable || kind === "DaemonSet" ? checkPodTemplate("spec.template", checked ?? template, claims) : []),
    // Kubernetes reports it twice.
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

/** How the numbers in the status of a workload are validated (validation.ValidateDeploymentStatus and its like, Kubernetes 1.36). */
export interface StatusRule {
  /** Numbers that may not be negative. */
  counts: string[];
  /** Of these, the ones that `replicas` limits. */
  ofReplicas?: string[];
  /** What the number of available replicas is compared with, as its message names it. */
  ready?: string;
}

/** Checks the numbers in the status of a workload. */
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

// What is neither a number nor a percentage counts for nothing.
export function isZero(value: JsonValue | undefined): boolean {
  return !/^([+-]?[0-9]+|[0-9]+%)$/.test(String(value)) || Number.parseInt(String(value), 10) === 0;
}

/** Gives an update strategy of type RollingUpdate its parameters. */
export function defaultRollingUpdate(strategy: JsonObject): void {
  strategy["type"] ??= "RollingUpdate";
  if (strategy["type"] === "RollingUpdate") strategy["rollingUpdate"] ??= {};
}

const COLLISIONS = "collisionCount";

// Names that were taken are counted up.
function checkCollisions(status: JsonObject, before: JsonObject | undefined): FieldError[] {
  const [count, old] = [memberOf(status, COLLISIONS), memberOf(before, COLLISIONS)];
  const isLess = typeof old === "number" && (typeof count !== "number" || count < old);
  return isLess ? [invalidError(`status.${COLLISIONS}`, count ?? 0, "cannot be decremented")] : [];
}

function numberOf(status: JsonObject, name: string): number {
  const value = memberOf(status, name);
  return typeof value === "number" ? value : 0;
}
