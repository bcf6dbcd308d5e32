// podFailurePolicy and successPolicy of Jobs.
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  requiredError,
  tooLongError,
  tooManyError,
  withoutValue,
} from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { checkNotNegative, checkOneOf, checkQualifiedName } from "../../validation/fields.js";
import { type GoStruct, goForm } from "../../validation/immutable-fields.js";
import { readIndexes } from "./job-indexes.js";

const MAX_RULES = 20;
const MAX_CODES = 255;
const MAX_INDEXES = 64 * 1024;
const ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES = ["False", "True", "Unknown"];
const OPERATORS = ["In", "NotIn"];

/** Validates the podFailurePolicy of a Job. */
export function checkFailurePolicy(path: string, spec: JsonObject): FieldError[] {
  const policy = objectAt(spec, "podFailurePolicy");
  if (policy === undefined) return [];
  const [rules, at] = [objectsAt(policy, "rules"), `${path}.podFailurePolicy.rules`];
  const template = objectAt(objectAt(spec, "template"), "spec") ?? {};
  const names = ["containers", "initContainers"].flatMap((list) =>
    objectsAt(template, list).map((container) => textAt(container, "name")),
  );
  return [
    ...checkCount(at, rules.length, MAX_RULES),
    ...rules.flatMap((rule, index) => checkFailureRule(`${at}[${index}]`, rule, { spec, names })),
  ];
}

function checkCount(path: string, count: number, most: number): FieldError[] {
  return count > most ? [tooManyError(path, count, most)] : [];
}

function checkFailureRule(
  path: string,
  rule: JsonObject,
  { spec, names }: { spec: JsonObject; names: string[] },
): FieldError[] {
  const [codes, conditions] = [objectAt(rule, "onExitCodes"), objectsAt(rule, "onPodConditions")];
  const action = textAt(rule, "action");
  const isLimited = memberOf(spec, "backoffLimitPerIndex") !== undefined;
  const at = `${path}.onPodConditions`;
  const wrong = (detail: string) => withoutValue(path, "FieldValueInvalid", detail);
  return [
    ...checkNamedChoice(`${path}.action`, action, ACTIONS),
    ...(action === "FailIndex" && !isLimited
      ? [invalidError(`${path}.action`, action, "requires the backoffLimitPerIndex to be set")]
      : []),
    ...(codes === undefined ? [] : checkExitCodes(`${path}.onExitCodes`, codes, names)),
    ...checkCount(at, conditions.length, MAX_RULES),
    ...conditions.flatMap((condition, index) => [
      ...checkQualifiedName(`${at}[${index}].type`, textAt(condition, "type")),
      ...checkNamedChoice(`${at}[${index}].status`, textAt(condition, "status"), STATUSES),
    ]),
    ...(codes !== undefined && conditions.length > 0
      ? [wrong("specifying both OnExitCodes and OnPodConditions is not supported")]
      : []),
    ...(codes === undefined && conditions.length === 0
      ? [wrong("specifying one of OnExitCodes and OnPodConditions is required")]
      : []),
  ];
}

// kube-apiserver lists the valid values in brackets, without commas.
function checkNamedChoice(path: string, value: string, supported: string[]): FieldError[] {
  if (value !== "") return checkOneOf(path, value, supported);
  return [requiredError(path, `valid values: [${supported.map(quote).join(" ")}]`)];
}

function checkExitCodes(path: string, codes: JsonObject, names: string[]): FieldError[] {
  const [operator, name] = [textAt(codes, "operator"), memberOf(codes, "containerName")];
  const [values, at] = [(arrayAt(codes, "values") ?? []).map(Number), `${path}.values`];
  const isOrdered = values.every((value, index) => index === 0 || (values[index - 1] as number) <= value);
  const unknown = "must be one of the container or initContainer names in the pod template";
  const none = wasGivenEmpty(codes, "values") || arrayAt(codes, "values") !== undefined ? [] : null;
  return [
    ...checkNamedChoice(`${path}.operator`, operator, OPERATORS),
    ...(name === undefined || names.includes(String(name))
      ? []
      : [invalidError(`${path}.containerName`, name, unknown)]),
    ...(values.length === 0 ? [invalidError(at, none, "at least one value is required")] : []),
    ...checkCount(at, values.length, MAX_CODES),
    ...values.flatMap((value, index) => [
      ...(operator === "In" && value === 0
        ? [invalidError(`${at}[${index}]`, value, "must not be 0 for the In operator")]
        : []),
      ...(values.indexOf(value) < index ? [duplicateError(`${at}[${index}]`, value)] : []),
    ]),
    ...(isOrdered ? [] : [invalidError(at, values, "must be ordered")]),
  ];
}

/** Validates the successPolicy of a Job. */
export function checkSuccessPolicy(path: string, spec: JsonObject): FieldError[] {
  const policy = objectAt(spec, "successPolicy");
  if (policy === undefined) return [];
  const rules = objectsAt(policy, "rules");
  if (memberOf(spec, "completionMode") !== "Indexed") {
    return [invalidError(path, goSuccessPolicy(policy), "requires indexed completion mode")];
  }
  const missing = "at least one rules must be specified when the successPolicy is specified";
  const completions = Number(memberOf(spec, "completions") ?? 0);
  return [
    ...(rules.length === 0 ? [requiredError(`${path}.rules`, missing)] : []),
    ...checkCount(`${path}.rules`, rules.length, MAX_RULES),
    ...rules.flatMap((rule, index) => checkSuccessRule(`${path}.rules[${index}]`, rule, completions)),
  ];
}

const SUCCESS: GoStruct = {
  Rules: { kind: "list", struct: { SucceededIndexes: null, SucceededCount: null } },
};
const FAILURE: GoStruct = {
  Rules: {
    kind: "list",
    struct: {
      Action: "",
      OnExitCodes: { kind: "pointer", struct: { ContainerName: null, Operator: "", Values: [] } },
      OnPodConditions: { kind: "list", struct: { Type: "", Status: "" } },
    },
  },
};

/** Formats a successPolicy as Go does. */
export function goSuccessPolicy(policy: JsonObject): JsonObject {
  return goForm(SUCCESS, policy);
}

/** Formats a podFailurePolicy as Go does. */
export function goFailurePolicy(policy: JsonObject): JsonObject {
  return goForm(FAILURE, policy);
}

function checkSuccessRule(path: string, rule: JsonObject, completions: number): FieldError[] {
  const [indexes, count] = [memberOf(rule, "succeededIndexes"), memberOf(rule, "succeededCount")];
  const none = "at least one of succeededCount or succeededIndexes must be specified";
  if (indexes === undefined && count === undefined) return [requiredError(path, none)];
  const [field, at] = [`${path}.succeededIndexes`, `${path}.succeededCount`];
  const read = readIndexes(String(indexes ?? ""), completions);
  const total = typeof read === "number" ? read : 0;
  const most = (limit: number, of: string) =>
    typeof count === "number" && count > limit
      ? [invalidError(at, count, `must be less than or equal to ${limit} (the number of ${of})`)]
      : [];
  return [
    ...(String(indexes ?? "").length > MAX_INDEXES ? [tooLongError(field, MAX_INDEXES)] : []),
    ...(typeof read === "string"
      ? [invalidError(field, indexes ?? "", `error parsing succeededIndexes: ${read}`)]
      : []),
    ...checkNotNegative(at, count),
    ...most(completions, "specified completions"),
    ...(indexes === undefined ? [] : most(total, "indexes in the specified succeededIndexes field")),
  ];
}
