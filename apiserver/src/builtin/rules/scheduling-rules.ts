import { forbiddenError, invalidError, type FieldError } from "../../errors/field-error.js";
import { memberOf, objectAt, stringAt, type JsonObject, type JsonValue } from "../../json.js";
import { checkNotNegative, checkOneOf } from "./field-rules.js";

const MAX_USER_PRIORITY = 1_000_000_000;

/** Checks a PodDisruptionBudget. */
export function checkDisruptionBudget(budget: JsonObject): FieldError[] {
  const spec = objectAt(budget, "spec") ?? {};
  const [min, max] = [memberOf(spec, "minAvailable"), memberOf(spec, "maxUnavailable")];
  const errors = [
    ...checkBound("spec.minAvailable", min),
    ...checkBound("spec.maxUnavailable", max),
    ...checkOneOf("spec.unhealthyPodEvictionPolicy", memberOf(spec, "unhealthyPodEvictionPolicy"), [
      "AlwaysAllow",
      "IfHealthyBudget",
    ]),
  ];
  if (min === undefined || max === undefined) return errors;
  const shown = {
    MinAvailable: min,
    Selector: memberOf(spec, "selector") ?? null,
    MaxUnavailable: max,
    UnhealthyPodEvictionPolicy: memberOf(spec, "unhealthyPodEvictionPolicy") ?? null,
  };
  return [invalidError("spec", shown, "minAvailable and maxUnavailable cannot be both set")];
}

/** A number, or a percentage of the Pods. */
function checkBound(path: string, bound: JsonValue | undefined): FieldError[] {
  if (typeof bound === "number") return checkNotNegative(path, bound);
  if (typeof bound !== "string") return [];
  const percent = /^(\d+)%$/.exec(bound)?.[1];
  if (percent === undefined) {
    const rule = "a valid percent string must be a numeric string followed by an ending '%'";
    return [invalidError(path, bound, `${rule} (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`)];
  }
  return Number(percent) > 100 ? [invalidError(path, bound, "must not be greater than 100%")] : [];
}

const SYSTEM_CLASSES = new Set(["system-node-critical", "system-cluster-critical"]);

/** Checks a PriorityClass. */
export function checkPriorityClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const value = memberOf(object, "value") ?? 0;
  const name = stringAt(objectAt(object, "metadata"), "name") ?? "";
  const isSystem = name.startsWith("system-");
  const reserved =
    "priority class names with 'system-' prefix are reserved for system use only. error: " +
    `${name} is not a known system priority class`;
  const limit = `maximum allowed value of a user defined priority is ${MAX_USER_PRIORITY}`;
  return [
    ...(isSystem && !SYSTEM_CLASSES.has(name) ? [forbiddenError("metadata.name", reserved)] : []),
    ...(!isSystem && typeof value === "number" && value > MAX_USER_PRIORITY ? [forbiddenError("value", limit)] : []),
    ...(old !== undefined && memberOf(old, "value") !== value
      ? [forbiddenError("value", "may not be changed in an update.")]
      : []),
  ];
}
