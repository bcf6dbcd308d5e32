import { checkText, type Variables } from "../../../errors/expression-problem.js";
import {
  duplicateError,
  invalidError,
  requiredError,
  tooManyError,
  type FieldError,
} from "../../../errors/field-error.js";
import { isObject, stringAt, type JsonObject } from "../../../json.js";
import { qualifiedNameProblems } from "../name-syntax.js";

/** The type of what nothing is known of. */
export const ANYTHING = { kind: "dyn" } as const;

/** What the expressions about a request see; of their types nothing is known here. */
export const REQUEST: Variables = { object: ANYTHING, oldObject: ANYTHING, request: ANYTHING, authorizer: ANYTHING };

const MOST_CONDITIONS = 64;

/** Checks the match conditions of a webhook or a policy. */
export function checkMatchConditions(field: string, conditions: JsonObject[], variables = REQUEST): FieldError[] {
  const names = conditions.map((condition) => stringAt(condition, "name") ?? "");
  const each = conditions.filter(isObject).flatMap((condition, index) => {
    const [name, at] = [names[index] ?? "", `${field}[${index}]`];
    const isRepeated = name !== "" && names.indexOf(name) < index;
    return [
      ...((stringAt(condition, "expression") ?? "").trim() === ""
        ? [requiredError(`${at}.expression`)]
        : checkExpressionAt(`${at}.expression`, condition, { variables })),
      ...(name === ""
        ? [requiredError(`${at}.name`)]
        : qualifiedNameProblems(name).map((detail) => invalidError(`${at}.name`, name, detail))),
      ...(isRepeated ? [duplicateError(`${at}.name`, name)] : []),
    ];
  });
  return [
    ...(conditions.length > MOST_CONDITIONS ? [tooManyError(field, conditions.length, MOST_CONDITIONS)] : []),
    ...each,
  ];
}

/** What an expression may see, and what it has to come to. */
interface Wanted {
  readonly variables: Variables;
  /** Default: bool. */
  readonly wanted?: string | readonly string[];
  /** Whether it may construct `Object{…}` and `JSONPatch{…}`; what it comes to must be known then. */
  readonly hasPatchTypes?: boolean;
}

/** Checks an expression that is the last member of a path; of one that is missing nothing is said. */
export function checkExpressionAt(
  field: string,
  object: JsonObject,
  { variables, wanted = "bool", hasPatchTypes = false }: Wanted,
): FieldError[] {
  const text = stringAt(object, field.slice(field.lastIndexOf(".") + 1)) ?? "";
  const checked = text.trim() === "" ? undefined : checkText(text, variables, { hasPatchTypes });
  if (checked === undefined || "unread" in checked) return [];
  if ("problem" in checked) return [invalidError(field, text, checked.problem)];
  const { type } = checked;
  if (wanted === "any" || (type === "dyn" && !hasPatchTypes) || [wanted].flat().includes(type)) return [];
  const [only, ...others] = [wanted].flat();
  const words = others.length === 0 ? String(only) : `one of [${[wanted].flat().join(" ")}]`;
  return [invalidError(field, text, `must evaluate to ${words} but got ${type}`)];
}
