// What places, scales and keeps workloads.
import { parseQuantity } from "@gen-operator/schema";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt, stringAt } from "../../json.js";
import { objectsAt } from "../../builtin/read-path.js";
import {
  checkImmutable,
  checkIntOrPercent,
  checkLabelSelector,
  checkNotNegative,
  checkOneOf,
  goSelector,
} from "../../validation/fields.js";
import { checkMetric, checkReference } from "./metrics.js";
import { checkConditions } from "../../validation/conditions.js";

const MAX_USER_PRIORITY = 1_000_000_000;
const MAX_STABILIZATION_SECONDS = 3600;
const MAX_PERIOD_SECONDS = 1800;

/** Checks a HorizontalPodAutoscaler. */
export function checkAutoscaler(autoscaler: JsonObject): FieldError[] {
  const spec = objectAt(autoscaler, "spec") ?? {};
  const [min, max] = [memberOf(spec, "minReplicas"), memberOf(spec, "maxReplicas") ?? 0];
  const behavior = objectAt(spec, "behavior");
  return [
    ...(typeof min === "number" && min < 1
      ? [
          invalidError("spec.minReplicas", min, "must be greater than or equal to 1"),
          ...(min === 0 ? checkZero(spec) : []),
        ]
      : []),
    ...checkMaximum(max),
    ...(typeof min === "number" && typeof max === "number" && max < min
      ? [invalidError("spec.maxReplicas", max, "must be greater than or equal to `minReplicas`")]
      : []),
    ...objectsAt(spec, "metrics").flatMap((metric, index) => checkMetric(`spec.metrics[${index}]`, metric)),
    ...checkReference("spec.scaleTargetRef", objectAt(spec, "scaleTargetRef") ?? {}),
    ...["scaleUp", "scaleDown"].flatMap((key) => checkScaling(`spec.behavior.${key}`, objectAt(behavior, key))),
  ];
}

function checkZero(spec: JsonObject): FieldError[] {
  const isFromOutside = objectsAt(spec, "metrics").some(({ type }) => type === "Object" || type === "External");
  const detail = "must specify at least one Object or External metric to support scaling to zero replicas";
  return isFromOutside ? [] : [forbiddenError("spec.metrics", detail)];
}

function checkMaximum(max: JsonValue): FieldError[] {
  if (typeof max !== "number" || max > 0) return [];
  if (max === 0) return [requiredError("spec.maxReplicas", "must be set and greater than 0")];
  return [invalidError("spec.maxReplicas", max, "must be greater than or equal to 1")];
}

function checkScaling(path: string, rules: JsonObject | undefined): FieldError[] {
  if (rules === undefined) return [];
  const seconds = memberOf(rules, "stabilizationWindowSeconds");
  const policies = objectsAt(rules, "policies");
  const tolerance = memberOf(rules, "tolerance");
  return [
    ...(typeof tolerance === "string" && (parseQuantity(tolerance) ?? 0n) < 0n
      ? [invalidError(`${path}.tolerance`, tolerance, "must be greater than or equal to 0")]
      : []),
    ...(typeof seconds === "number" && seconds < 0
      ? [invalidError(`${path}.stabilizationWindowSeconds`, seconds, "must be greater than or equal to zero")]
      : []),
    ...(typeof seconds === "number" && seconds > MAX_STABILIZATION_SECONDS
      ? [
          invalidError(
            `${path}.stabilizationWindowSeconds`,
            seconds,
            `must be less than or equal to ${MAX_STABILIZATION_SECONDS}`,
          ),
        ]
      : []),
    ...checkOneOf(`${path}.selectPolicy`, memberOf(rules, "selectPolicy"), ["Disabled", "Max", "Min"]),
    ...(policies.length === 0 ? [requiredError(`${path}.policies`, "must specify at least one Policy")] : []),
    ...policies.flatMap((policy, index) => checkPolicy(`${path}.policies[${index}]`, policy)),
  ];
}

function checkPolicy(path: string, policy: JsonObject): FieldError[] {
  const type = memberOf(policy, "type") ?? "";
  const [value, seconds] = ["value", "periodSeconds"].map((key) => Number(memberOf(policy, key) ?? 0)) as [
    number,
    number,
  ];
  return [
    ...(type === "Pods" || type === "Percent" ? [] : [notSupportedError(`${path}.type`, type, ["Percent", "Pods"])]),
    ...(value > 0 ? [] : [invalidError(`${path}.value`, value, "must be greater than zero")]),
    ...(seconds > 0 ? [] : [invalidError(`${path}.periodSeconds`, seconds, "must be greater than zero")]),
    ...(seconds > MAX_PERIOD_SECONDS
      ? [invalidError(`${path}.periodSeconds`, seconds, `must be less than or equal to ${MAX_PERIOD_SECONDS}`)]
      : []),
  ];
}

/** Checks a PodDisruptionBudget. */
export function checkDisruptionBudget(budget: JsonObject): FieldError[] {
  const spec = objectAt(budget, "spec") ?? {};
  const [min, max] = [memberOf(spec, "minAvailable"), memberOf(spec, "maxUnavailable")];
  const policy = memberOf(spec, "unhealthyPodEvictionPolicy");
  const selector = objectAt(spec, "selector");
  const shown = {
    MinAvailable: min ?? null,
    Selector: selector === undefined ? null : goSelector(selector),
    MaxUnavailable: max ?? null,
    UnhealthyPodEvictionPolicy: policy ?? null,
  };
  return [
    ...(min === undefined || max === undefined
      ? []
      : [invalidError("spec", shown, "minAvailable and maxUnavailable cannot be both set")]),
    ...checkIntOrPercent("spec.minAvailable", min, { max: 100 }),
    ...checkIntOrPercent("spec.maxUnavailable", max, { max: 100 }),
    ...checkLabelSelector("spec.selector", objectAt(spec, "selector")),
    ...checkOneOf("spec.unhealthyPodEvictionPolicy", policy, ["AlwaysAllow", "IfHealthyBudget"]),
  ];
}

/** Checks the status of a PodDisruptionBudget. */
export function checkDisruptionBudgetStatus(budget: JsonObject): FieldError[] {
  const status = objectAt(budget, "status") ?? {};
  const counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
  return [
    ...checkConditions("status.conditions", objectsAt(status, "conditions")),
    ...counts.flatMap((key) => checkNotNegative(`status.${key}`, memberOf(status, key))),
  ];
}

// Their values.
const SYSTEM_CLASSES: Record<string, number> = {
  "system-node-critical": 2_000_001_000,
  "system-cluster-critical": 2_000_000_000,
};

/** Checks a PriorityClass. */
export function checkPriorityClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const value = memberOf(object, "value") ?? 0;
  // Of a class that is there only what may not change is looked at.
  if (old !== undefined) {
    const isSame = (memberOf(old, "value") ?? 0) === value;
    return [
      ...(isSame ? [] : [forbiddenError("value", "may not be changed in an update.")]),
      ...checkImmutable("", { spec: object, old, keys: ["preemptionPolicy"] }),
    ];
  }
  const name = stringAt(objectAt(object, "metadata"), "name") ?? "";
  const isSystem = name.startsWith("system-");
  const limit = `maximum allowed value of a user defined priority is ${MAX_USER_PRIORITY}`;
  return [
    ...(isSystem ? checkSystemClass(name, object) : []),
    ...(!isSystem && typeof value === "number" && value > MAX_USER_PRIORITY ? [forbiddenError("value", limit)] : []),
    ...checkPreemption("preemptionPolicy", memberOf(object, "preemptionPolicy")),
  ];
}

function checkSystemClass(name: string, object: JsonObject): FieldError[] {
  const reserved = "priority class names with 'system-' prefix are reserved for system use only. error: ";
  const value = SYSTEM_CLASSES[name];
  const problem =
    value === undefined
      ? `${name} is not a known system priority class`
      : value !== (memberOf(object, "value") ?? 0)
        ? `value of ${name} PriorityClass must be ${value}`
        : memberOf(object, "globalDefault") === true
          ? `globalDefault of ${name} PriorityClass must be false`
          : "";
  return problem === "" ? [] : [forbiddenError("metadata.name", reserved + problem)];
}

/** Demands a policy of preemption, if one is given. */
export function checkPreemption(field: string, policy: JsonValue | undefined): FieldError[] {
  return policy === "" ? [requiredError(field)] : checkOneOf(field, policy, ["PreemptLowerPriority", "Never"]);
}
