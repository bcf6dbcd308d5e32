import { checkText, type Variables } from "../../../errors/expression-problem.js";
import { duplicateError, invalidError, type FieldError } from "../../../errors/field-error.js";
import { isObject, stringAt, type JsonObject } from "../../../json.js";
import { checkRequired } from "../field-rules.js";

/** The type of what nothing is known of. */
export const ANYTHING = { kind: "dyn" } as const;

/** What the expressions about a request see; of their types nothing is known here. */
export const REQUEST: Variables = { object: ANYTHING, oldObject: ANYTHING, request: ANYTHING, authorizer: ANYTHING };

/** Checks the match conditions of a webhook or a policy. */
export function checkMatchConditions(field: string, conditions: JsonObject[], variables = REQUEST): FieldError[] {
  const names = conditions.map((condition) => stringAt(condition, "name") ?? "");
  return conditions.filter(isObject).flatMap((condition, index) => {
    const name = names[index] ?? "";
    const isRepeated = name !== "" && names.indexOf(name) < index;
    return [
      ...checkRequired(`${field}[${index}].expression`, condition["expression"]),
      ...checkExpressionAt(`${field}[${index}].expression`, condition, { variables }),
      ...checkRequired(`${field}[${index}].name`, name),
      ...(isRepeated ? [duplicateError(`${field}[${index}].name`, name)] : []),
    ];
  });
}

/** Checks an expression that is the last member of a path; of one that is missing nothing is said. */
export function checkExpressionAt(
  field: string,
  object: JsonObject,
  { variables, wanted = "bool" }: { variables: Variables; wanted?: "bool" | "string" | "any" },
): FieldError[] {
  const text = stringAt(object, field.slice(field.lastIndexOf(".") + 1)) ?? "";
  const checked = text.trim() === "" ? undefined : checkText(text, variables);
  if (checked === undefined) return [];
  if ("problem" in checked) return [invalidError(field, text, checked.problem)];
  const { type } = checked;
  if (wanted === "any" || type === "dyn" || type === wanted) return [];
  return [invalidError(field, text, `must evaluate to ${wanted} but got ${type}`)];
}
