import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, isObject, memberOf } from "../../json.js";
import { checkNotNegative } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const controllerRevisionStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  validate: checkRevision,
};

/** Checks a ControllerRevision: its data are an object when it is created, and stay. */
function checkRevision(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const data = memberOf(object, "data") ?? null;
  const ofNumber = checkNotNegative("revision", memberOf(object, "revision"));
  // Data that are written in another order are others.
  const isSame = old !== undefined && JSON.stringify(data) === JSON.stringify(memberOf(old, "data") ?? null);
  if (old !== undefined) return [...ofNumber, ...(isSame ? [] : [invalidError("data", data, "field is immutable")])];
  return [
    ...(data === null ? [requiredError("data", "data is mandatory")] : []),
    ...(data === null || isObject(data) ? [] : [requiredError("data", "data must be a valid JSON object")]),
    ...ofNumber,
  ];
}
