import { type VariableType, type Variables, checkText } from "../../errors/expression-problem.js";
import {
  type FieldError,
  duplicateError,
  internalError,
  invalidError,
  requiredError,
  tooManyError,
} from "../../errors/field-error.js";
import { type JsonObject, isObject, stringAt } from "../../json.js";
import { checkQualifiedName } from "../../validation/fields.js";
import { AUTHORIZER, REQUEST } from "./expression-types.js";

const MOST_CONDITIONS = 64;

/** Checks the match conditions of a webhook or a policy; `params` is what they see besides. */
export function checkMatchConditions(field: string, conditions: JsonObject[], params: Variables = {}): FieldError[] {
  const variables = { ...REQUEST, ...AUTHORIZER, ...params };
  const names = conditions.map((condition) => stringAt(condition, "name") ?? "");
  const each = conditions.filter(isObject).flatMap((condition, index) => {
    const [name, at] = [names[index] ?? "", `${field}[${index}]`];
    const isRepeated = name !== "" && names.indexOf(name) < index;
    return [
      ...((stringAt(condition, "expression") ?? "").trim() === ""
        ? [requiredError(`${at}.expression`)]
        : checkExpressionAt(`${at}.expression`, condition, { variables, trims: "seen" })),
      ...(name === "" ? [requiredError(`${at}.name`)] : checkQualifiedName(`${at}.name`, name)),
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
  /** Whether it may construct `Object{…}` and `JSONPatch{…}`. */
  readonly hasPatchTypes?: boolean;
  /** Whether the spaces around it are left out before it is read; `unseen`: it is shown with them. */
  readonly trims?: "seen" | "unseen";
}

/** Checks an expression that is the last member of a path; of one that is missing nothing is said. */
export function checkExpressionAt(field: string, object: JsonObject, wanted: Wanted): FieldError[] {
  return typeOfExpressionAt(field, object, wanted).errors;
}

/** Checks an expression in the same way, and returns the type of what it comes to; undefined if that is not known. */
export function typeOfExpressionAt(
  field: string,
  object: JsonObject,
  { variables, wanted = "bool", hasPatchTypes = false, trims }: Wanted,
): { readonly errors: FieldError[]; readonly type?: VariableType } {
  const given = stringAt(object, field.slice(field.lastIndexOf(".") + 1)) ?? "";
  const text = trims === undefined ? given : given.trim();
  const checked = text.trim() === "" ? undefined : checkText(text, variables, { hasPatchTypes });
  if (checked === undefined || "unread" in checked) return { errors: [] };
  const named = trims === "unseen" ? given : text;
  if ("problem" in checked) return { errors: [invalidError(field, named, checked.problem)] };
  const { type } = checked;
  if (wanted === "any" || [wanted].flat().includes(type)) {
    const { programProblem, type: found } = checked.checked;
    if (programProblem === undefined) return { errors: [], type: found };
    return { errors: [internalError(field, `program instantiation failed: ${programProblem}`)] };
  }
  const [only, ...others] = [wanted].flat();
  const words = others.length === 0 ? String(only) : `one of [${[wanted].flat().join(" ")}]`;
  return { errors: [invalidError(field, named, `must evaluate to ${words} but got ${type}`)] };
}
