// Which nodes something is for.
import { type FieldError, forbiddenError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { checkDomain, checkLabelValue, checkQualifiedName } from "../../validation/fields.js";

/** Checks a selector of nodes at `path`. */
export function checkNodeSelector(path: string, selector: JsonObject): FieldError[] {
  const field = `${path}.nodeSelectorTerms`;
  const terms = objectsAt(selector, "nodeSelectorTerms");
  if (terms.length === 0) return [requiredError(field, "must have at least one node selector term")];
  return terms.flatMap((term, index) => checkNodeSelectorTerm(`${field}[${index}]`, term));
}

/** Checks one term of a selector of nodes at `path`; where nodes are only preferred, their labels may be searched for any value. */
export function checkNodeSelectorTerm(path: string, term: JsonObject, { anyValue = false } = {}): FieldError[] {
  return [
    ...objectsAt(term, "matchExpressions").flatMap((one, index) =>
      checkRequirement(`${path}.matchExpressions[${index}]`, one, anyValue),
    ),
    ...objectsAt(term, "matchFields").flatMap((one, index) => checkField(`${path}.matchFields[${index}]`, one)),
  ];
}

function checkField(path: string, requirement: JsonObject): FieldError[] {
  const [key, operator] = [textAt(requirement, "key"), textAt(requirement, "operator")];
  const values = (arrayAt(requirement, "values") ?? []).map(String);
  const isKnown = operator === "In" || operator === "NotIn";
  const one = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
  return [
    ...(isKnown && values.length !== 1 ? [requiredError(`${path}.values`, one)] : []),
    ...(isKnown ? [] : [invalidError(`${path}.operator`, operator, "not a valid selector operator")]),
    ...(key === "metadata.name"
      ? values.flatMap((value, index) => checkDomain(`${path}.values[${index}]`, value))
      : [invalidError(`${path}.key`, key, "not a valid field selector key")]),
  ];
}

function checkRequirement(path: string, requirement: JsonObject, anyValue: boolean): FieldError[] {
  const [key, operator] = [textAt(requirement, "key"), textAt(requirement, "operator")];
  const values = (arrayAt(requirement, "values") ?? []).map(String);
  const field = `${path}.values`;
  return [
    ...checkOperator(path, operator, values.length),
    ...checkQualifiedName(`${path}.key`, key),
    ...(anyValue ? [] : values).flatMap((value, index) => checkLabelValue(`${field}[${index}]`, value)),
  ];
}

function checkOperator(path: string, operator: string, count: number): FieldError[] {
  const field = `${path}.values`;
  switch (operator) {
    case "In":
    case "NotIn":
      return count > 0 ? [] : [requiredError(field, "must be specified when `operator` is 'In' or 'NotIn'")];
    case "Exists":
    case "DoesNotExist":
      return count === 0
        ? []
        : [forbiddenError(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
    case "Gt":
    case "Lt":
      return count === 1
        ? []
        : [requiredError(field, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
    default:
      return [invalidError(`${path}.operator`, operator, "not a valid selector operator")];
  }
}
