import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, isObject, memberOf } from "../../json.js";
import { checkNotNegative } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const controllerRevisionStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  validate: checkRevision,
};

/** Validates a ControllerRevision: data must be an object and is immutable. */
function checkRevision(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const data = memberOf(object, "data") ?? null;
  const ofNumber = checkNotNegative("revision", memberOf(object, "revision"));
  // As in Kubernetes, the raw data is compared, so a different order of keys is a change.
  const isSame = old !== undefined && JSON.stringify(data) === JSON.stringify(memberOf(old, "data") ?? null);
  if (old !== undefined) return [...ofNumber, ...(isSame ? [] : [invalidError("data", data, "field is immutable")])];
  return [
    ...(data === null ? [requiredError("data", "data is mandatory")] : []),
    ...(data === null || isObject(data) ? [] : [requiredError("data", "data must be a valid JSON object")]),
    ...ofNumber,
  ];
}
