import { parseQuantity } from "@gen-operator/schema";
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
import { checkNotNegative, checkOneOf } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";
import { checkMetric, checkReference } from "./metrics.js";

export const horizontalPodAutoscalerStrategy: Strategy = {
  defaults: defaultUtilization,
  structDefaults: { "autoscaling.v2.HorizontalPodAutoscalerSpec": defaultAutoscaler },
  validate: checkAutoscaler,
  validateStatus: checkAutoscalerStatus,
};

const MAX_STABILIZATION_SECONDS = 3600;
const MAX_PERIOD_SECONDS = 1800;

function checkAutoscaler(autoscaler: JsonObject): FieldError[] {
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

function checkAutoscalerStatus(autoscaler: JsonObject): FieldError[] {
  const status = objectAt(autoscaler, "status");
  return ["currentReplicas", "desiredReplicas"].flatMap((name) =>
    checkNotNegative(`status.${name}`, memberOf(status, name)),
  );
}

/** Sets the default metric, and completes the scaling rules if behavior is set. */
function defaultAutoscaler(spec: JsonObject): void {
  const utilization = { type: "Utilization", averageUtilization: 80 };
  spec["metrics"] ??= [{ type: "Resource", resource: { name: "cpu", target: utilization } }];
  const behavior = objectAt(spec, "behavior");
  if (behavior === undefined) return;
  const withoutPolicies = ["scaleUp", "scaleDown"].filter((key) => wasGivenEmpty(objectAt(behavior, key), "policies"));
  behavior["scaleUp"] = {
    stabilizationWindowSeconds: 0,
    selectPolicy: "Max",
    policies: [
      { type: "Pods", value: 4, periodSeconds: 15 },
      { type: "Percent", value: 100, periodSeconds: 15 },
    ],
    ...objectAt(behavior, "scaleUp"),
  };
  behavior["scaleDown"] = {
    selectPolicy: "Max",
    policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
    ...objectAt(behavior, "scaleDown"),
  };
  for (const key of withoutPolicies) delete objectAt(behavior, key)?.["policies"];
}

/** Annotation with the metrics that autoscaling/v1 has no fields for. */
const OTHER_METRICS = "autoscaling.alpha.kubernetes.io/metrics";

/** Sets the default CPU utilization of autoscaling/v1 if there are no other metrics. */
function defaultUtilization(scaler: JsonObject): void {
  const [spec, annotations] = [objectAt(scaler, "spec"), objectAt(objectAt(scaler, "metadata"), "annotations")];
  if (scaler["apiVersion"] !== "autoscaling/v1" || spec === undefined) return;
  if (memberOf(annotations, OTHER_METRICS) === undefined) spec["targetCPUUtilizationPercentage"] ??= 80;
}
