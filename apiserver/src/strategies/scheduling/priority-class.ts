import { type FieldError, forbiddenError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt, stringAt } from "../../json.js";
import { checkImmutable, checkOneOf } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const priorityClassStrategy: Strategy = {
  generation: "first",
  validate: checkPriorityClass,
};

const MAX_USER_PRIORITY = 1_000_000_000;

// System priority classes and their values.
const SYSTEM_CLASSES: Record<string, number> = {
  "system-node-critical": 2_000_001_000,
  "system-cluster-critical": 2_000_000_000,
};

function checkPriorityClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const value = memberOf(object, "value") ?? 0;
  // On update, only immutable fields are validated.
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

/** Validates an optional preemptionPolicy. */
export function checkPreemption(field: string, policy: JsonValue | undefined): FieldError[] {
  return policy === "" ? [requiredError(field)] : checkOneOf(field, policy, ["PreemptLowerPriority", "Never"]);
}
