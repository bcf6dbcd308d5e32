import { objectsAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkConditions } from "../../validation/conditions.js";
import {
  checkIntOrPercent,
  checkLabelSelector,
  checkNotNegative,
  checkOneOf,
  goSelector,
} from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const podDisruptionBudgetStrategy: Strategy = {
  generation: "spec",
  allowsUnconditionalUpdate: false,
  nameRule: "path-segment",
  checksFinalizers: false,
  checksMetadata: [],
  validate: checkDisruptionBudget,
  validateStatus: checkDisruptionBudgetStatus,
};

function checkDisruptionBudget(budget: JsonObject): FieldError[] {
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

/** Validates the status of a PodDisruptionBudget. */
function checkDisruptionBudgetStatus(budget: JsonObject): FieldError[] {
  const status = objectAt(budget, "status") ?? {};
  const counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
  return [
    ...checkConditions("status.conditions", objectsAt(status, "conditions")),
    ...counts.flatMap((key) => checkNotNegative(`status.${key}`, memberOf(status, key))),
  ];
}
