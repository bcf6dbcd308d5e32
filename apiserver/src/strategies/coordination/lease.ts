import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkNotNegative } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const leaseStrategy: Strategy = {
  allowsUnconditionalUpdate: false,
  createsOnUpdate: true,
  checksFinalizers: false,
  dropFields(lease) {
    const spec = objectAt(lease, "spec");
    for (const key of ["preferredHolder", "strategy"]) delete spec?.[key];
  },
  validate: checkLease,
};

function checkLease(lease: JsonObject): FieldError[] {
  const spec = objectAt(lease, "spec") ?? {};
  const seconds = memberOf(spec, "leaseDurationSeconds");
  const isTooShort = typeof seconds === "number" && seconds <= 0;
  return [
    ...(isTooShort ? [invalidError("spec.leaseDurationSeconds", seconds, "must be greater than 0")] : []),
    ...checkNotNegative("spec.leaseTransitions", memberOf(spec, "leaseTransitions")),
  ];
}
