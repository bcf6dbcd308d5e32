import { invalidError, notSupportedError, type FieldError } from "../../../errors/field-error.js";
import { memberOf, type JsonObject } from "../../../json.js";
import { objectsAt, textAt } from "../../read-path.js";
import { labelValueProblems } from "../name-syntax.js";
import { checkQualifiedName } from "../field-rules.js";

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Checks the tolerations of a pod spec at `path`. */
export function checkTolerations(path: string, spec: JsonObject): FieldError[] {
  return objectsAt(spec, "tolerations").flatMap((toleration, index) =>
    checkToleration(`${path}.tolerations[${index}]`, toleration),
  );
}

function checkToleration(path: string, toleration: JsonObject): FieldError[] {
  const [key, operator, value, effect] = ["key", "operator", "value", "effect"].map((name) =>
    textAt(toleration, name),
  ) as [string, string, string, string];
  const keyless = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
  const hasSeconds = memberOf(toleration, "tolerationSeconds") !== undefined;
  return [
    ...(key === "" ? [] : checkQualifiedName(`${path}.key`, key)),
    ...(key === "" && operator !== "Exists" ? [invalidError(`${path}.operator`, operator, keyless)] : []),
    ...(hasSeconds && effect !== "NoExecute"
      ? [invalidError(`${path}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")]
      : []),
    ...checkOperator(`${path}.operator`, operator, value),
    ...(effect === "" || EFFECTS.includes(effect) ? [] : [notSupportedError(`${path}.effect`, effect, EFFECTS)]),
  ];
}

function checkOperator(path: string, operator: string, value: string): FieldError[] {
  if (operator === "" || operator === "Equal")
    return labelValueProblems(value).map((detail) => invalidError(path, value, detail));
  if (operator !== "Exists") return [notSupportedError(path, operator, ["Equal", "Exists"])];
  return value === "" ? [] : [invalidError(path, value, "value must be empty when `operator` is 'Exists'")];
}
