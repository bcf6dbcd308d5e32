import { RESERVED_WORDS } from "@gen-operator/schema";
import type { VariableType, Variables } from "../../errors/expression-problem.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, stringAt } from "../../json.js";
import { objectsAt } from "../../builtin/read-path.js";
import { typeOfExpressionAt } from "./expressions.js";
import { ANYTHING, declaredType, variablesType } from "./expression-types.js";

/** Checks the variables of a policy, and gives the type of `variables`. A variable sees the ones before, and what is `seen` besides. */
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
