// What kube-apiserver demands of admission policies, in its order and words (pkg/apis/admissionregistration/validation).
import type { Variables } from "../../../errors/expression-problem.js";
import { invalidError, requiredError, type FieldError } from "../../../errors/field-error.js";
import { objectAt, stringAt, type JsonObject } from "../../../json.js";
import { objectsAt } from "../../read-path.js";
import { checkOneOf } from "../field-rules.js";
import { ANYTHING, checkExpressionAt, checkMatchConditions, REQUEST } from "./condition-rules.js";

const POLICY_REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/** Checks a ValidatingAdmissionPolicy. */
export function checkPolicy(policy: JsonObject): FieldError[] {
  const spec = objectAt(policy, "spec") ?? {};
  const [validations, variables] = [objectsAt(spec, "validations"), objectsAt(spec, "variables")];
  const params = spec["paramKind"] === undefined ? {} : { params: ANYTHING };
  const known: Variables = { ...REQUEST, ...params, namespaceObject: ANYTHING };
  const composed: Variables = variables.length === 0 ? known : { ...known, variables: ANYTHING };
  const isEmpty = validations.length === 0 && objectsAt(spec, "auditAnnotations").length === 0;
  const nothing = "validations or auditAnnotations must contain at least one item";
  return [
    ...checkMatchConditions("spec.matchConditions", objectsAt(spec, "matchConditions"), { ...REQUEST, ...params }),
    ...variables.flatMap((variable, index) => [
      ...checkVariableName(`spec.variables[${index}].name`, stringAt(variable, "name") ?? ""),
      ...checkExpressionAt(`spec.variables[${index}].expression`, variable, {
        variables: index === 0 ? known : composed,
        wanted: "any",
      }),
    ]),
    ...(isEmpty ? ["validations", "auditAnnotations"].map((name) => requiredError(`spec.${name}`, nothing)) : []),
    ...validations.flatMap((validation, index) => checkValidation(`spec.validations[${index}]`, validation, composed)),
  ];
}

function checkValidation(field: string, validation: JsonObject, variables: Variables): FieldError[] {
  const message = stringAt(validation, "message") ?? "";
  const isBlank = (stringAt(validation, "expression") ?? "").trim() === "";
  return [
    ...(isBlank
      ? [requiredError(`${field}.expression`, "expression is not specified")]
      : checkExpressionAt(`${field}.expression`, validation, { variables })),
    ...(message !== "" && message.trim() === ""
      ? [invalidError(`${field}.message`, message, "must be non-empty if specified")]
      : []),
    ...(message.trim().includes("\n")
      ? [invalidError(`${field}.message`, message, "must not contain line breaks")]
      : []),
    ...(validation["messageExpression"] === undefined
      ? []
      : checkExpressionAt(`${field}.messageExpression`, validation, { variables, wanted: "string" })),
    ...checkOneOf(`${field}.reason`, validation["reason"], POLICY_REASONS),
  ];
}

function checkVariableName(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field, "name is not specified")];
  return /^[A-Za-z_]\w*$/.test(name) ? [] : [invalidError(field, name, "must be a valid CEL identifier")];
}
