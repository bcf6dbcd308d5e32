// When a container starts again.
import {
  type FieldError,
  duplicateError,
  invalidError,
  requiredError,
  tooManyError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { checkOneOf, checkRequiredOneOf } from "../../validation/fields.js";

const MAX_RULES = 20;
const MAX_CODES = 255;

/** Checks when a container starts again; of one that runs before the others, rules without a policy are not looked at. */
export function checkRestarts(path: string, container: JsonObject, { isFirst = false } = {}): FieldError[] {
  const [policy, rules] = [memberOf(container, "restartPolicy"), objectsAt(container, "restartPolicyRules")];
  const missing =
    policy === undefined && rules.length > 0
      ? [requiredError(`${path}.restartPolicy`, "must specify restartPolicy when restart rules are used")]
      : [];
  if (policy === undefined && isFirst) return missing;
  return [
    ...missing,
    ...checkOneOf(`${path}.restartPolicy`, policy, ["Always", "Never", "OnFailure"]),
    ...(rules.length > MAX_RULES ? [tooManyError(`${path}.restartPolicyRules`, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, index) => checkRule(`${path}.restartPolicyRules[${index}]`, rule)),
  ];
}

function checkRule(path: string, rule: JsonObject): FieldError[] {
  const [codes, field] = [objectAt(rule, "exitCodes"), `${path}.exitCodes`];
  const count = (arrayAt(codes, "values") ?? []).length;
  return [
    ...checkOneOf(`${path}.action`, textAt(rule, "action"), ["Restart", "RestartAllContainers"]),
    ...(codes === undefined
      ? [requiredError(field, "must be specified")]
      : checkOneOf(`${field}.operator`, textAt(codes, "operator"), ["In", "NotIn"])),
    ...(count > MAX_CODES ? [tooManyError(`${field}.values`, count, MAX_CODES)] : []),
  ];
}

/** Checks what a container does when its resources change. */
export function checkResizing(path: string, policies: JsonObject[], podSpec: JsonObject): FieldError[] {
  const names = policies.map((policy) => textAt(policy, "resourceName"));
  const isOver = memberOf(podSpec, "restartPolicy") === "Never";
  return policies.flatMap((policy, index) => {
    const [name, restart] = [names[index] ?? "", textAt(policy, "restartPolicy")];
    const detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
    return [
      ...(names.indexOf(name) < index ? [duplicateError(`${path}[${index}]`, name)] : []),
      ...checkRequiredOneOf(path, name, ["cpu", "memory"]),
      ...checkRequiredOneOf(path, restart, ["NotRequired", "RestartContainer"]),
      ...(isOver && restart !== "NotRequired" ? [invalidError(path, restart, detail)] : []),
    ];
  });
}

/** Refuses to start a container again for new resources that ends before the others start. */
export function checkNoRestart(path: string, container: JsonObject): FieldError[] {
  return objectsAt(container, "resizePolicy").flatMap((policy, index) =>
    memberOf(policy, "restartPolicy") === "RestartContainer"
      ? [
          invalidError(
            `${path}.resizePolicy[${index}].restartPolicy`,
            "RestartContainer",
            "must not be set to 'RestartContainer' for non-sidecar initContainers",
          ),
        ]
      : [],
  );
}
