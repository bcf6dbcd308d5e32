// What may be written to the status of a ValidatingAdmissionPolicy.
import { type FieldError, requiredError } from "../../../errors/field-error.js";
import type { JsonObject } from "../../../json.js";
import { objectsAt, textAt } from "../../read-path.js";
import { checkConditions } from "./condition-rules.js";

/** Checks the status of a ValidatingAdmissionPolicy. */
export function checkPolicyStatus(policy: JsonObject): FieldError[] {
  return [
    ...objectsAt(policy, "status.typeChecking.expressionWarnings").flatMap((warning, index) =>
      ["warning", "fieldRef"]
        .filter((key) => (key === "fieldRef" ? textAt(warning, key).trim() : textAt(warning, key)) === "")
        .map((key) => requiredError(`status.typeChecking.expressionWarnings[${index}].${key}`)),
    ),
    ...checkConditions("status.conditions", objectsAt(policy, "status.conditions")),
  ];
}
