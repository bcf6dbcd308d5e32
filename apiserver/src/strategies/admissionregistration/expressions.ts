import { RESERVED_WORDS } from "@gen-operator/schema";
import { objectsAt } from "../../builtin/read-path.js";
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
import { ANYTHING, AUTHORIZER, REQUEST, declaredType, variablesType } from "./expression-types.js";

const MOST_CONDITIONS = 64;

/** Validates matchConditions of a webhook or policy; `params` contains additional variables. */
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

/** The variables and the expected result type of an expression. */
interface Wanted {
  readonly variables: Variables;
  /** Default: bool. */
  readonly wanted?: string | readonly string[];
  /** Allows `Object{…}` and `JSONPatch{…}`. */
  readonly hasPatchTypes?: boolean;
  /** Trims the expression before compilation; with `unseen`, messages contain the untrimmed text. */
  readonly trims?: "seen" | "unseen";
}

/** Validates the expression at the last segment of a path; a missing expression is not an error. */
export function checkExpressionAt(field: string, object: JsonObject, wanted: Wanted): FieldError[] {
  return typeOfExpressionAt(field, object, wanted).errors;
}

/** Like checkExpressionAt, and returns the result type; undefined if it is unknown. */
function typeOfExpressionAt(
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

/** Validates the variables of a policy and returns the type of `variables`. A variable can use the preceding ones and those in `seen`. */
export function checkVariables(
  spec: JsonObject,
  seen: Variables,
): { readonly errors: FieldError[]; readonly type: VariableType } {
  const types: { [name: string]: VariableType } = {};
  const errors = objectsAt(spec, "variables").flatMap((variable, index) => {
    const variables = { ...seen, variables: variablesType(types) };
    const checked = checkVariable(`spec.variables[${index}]`, variable, variables);
    types[stringAt(variable, "name") ?? ""] = declaredType(checked.type ?? ANYTHING);
    return checked.errors;
  });
  return { errors, type: variablesType(types) };
}

function checkVariable(
  field: string,
  variable: JsonObject,
  variables: Variables,
): { readonly errors: FieldError[]; readonly type?: VariableType } {
  const [name, expression] = [stringAt(variable, "name") ?? "", stringAt(variable, "expression") ?? ""];
  const checked =
    expression.trim() === ""
      ? { errors: [requiredError(`${field}.expression`, "expression is not specified")] }
      : typeOfExpressionAt(`${field}.expression`, variable, { variables, wanted: "any" });
  const ofName = [
    ...(name.trim() === "" ? [requiredError(`${field}.name`, "name is not specified")] : []),
    ...(name.trim() === "" || (/^[A-Za-z_]\w*$/.test(name) && !RESERVED_WORDS.has(name))
      ? []
      : [invalidError(`${field}.name`, name, "must be a valid CEL identifier")]),
  ];
  return { ...checked, errors: [...ofName, ...checked.errors] };
}
