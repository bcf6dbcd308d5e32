import { type FieldError, duplicateError, invalidError, notSupportedError } from "../../errors/field-error.js";
import { type JsonObject, memberOf } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { checkQualifiedName } from "../../validation/fields.js";
import { labelValueProblems } from "../../validation/names.js";

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
  const problems = labelValueProblems(value);
  if (operator === "" || operator === "Equal")
    return problems.length === 0 ? [] : [invalidError(path, value, problems.join(";"))];
  if (operator === "Lt" || operator === "Gt")
    return [notSupportedError(path, operator, ["Equal", "Exists", "Lt", "Gt"])];
  if (operator !== "Exists") return [notSupportedError(path, operator, ["Equal", "Exists"])];
  return value === "" ? [] : [invalidError(path, value, "value must be empty when `operator` is 'Exists'")];
}

/** Demands tolerations that differ in more than how long they last. */
export function checkTolerationsOnce(path: string, tolerations: JsonObject[]): FieldError[] {
  const keys = tolerations.map((one) =>
    ["key", "operator", "value", "effect"].map((name) => textAt(one, name)).join("\n"),
  );
  return tolerations.flatMap((toleration, index) => {
    if (keys.indexOf(keys[index] ?? "") === index) return [];
    // Kubernetes prints the fields of its structs, in their order.
    const shown = {
      Key: textAt(toleration, "key"),
      Operator: textAt(toleration, "operator"),
      Value: textAt(toleration, "value"),
      Effect: textAt(toleration, "effect"),
      TolerationSeconds: memberOf(toleration, "tolerationSeconds") ?? null,
    };
    return [duplicateError(`${path}[${index}]`, shown)];
  });
}
