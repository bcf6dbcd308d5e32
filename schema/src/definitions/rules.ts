// Evaluates the rules of a CRD's schema (`x-kubernetes-validations`), in Kubernetes' words.
import type { Schema } from "../values/schema.js";
import { findFailures, hasRules, type RuleFailure, type Step } from "../cel/index.js";
import {
  duplicateError,
  fieldErrorText,
  forbiddenError,
  invalidError,
  requiredError,
  withoutValue,
  type FieldError,
} from "./field-error.js";
import type { JsonObject, JsonValue } from "../json/json.js";
import type { StructuralSchema } from "./structural-schema.js";

/** What the rules of a schema find wrong with an object: errors, and warnings of what an update left as it was. */
export interface RuleFindings {
  readonly errors: FieldError[];
  readonly warnings: string[];
}

const NO_FINDINGS: RuleFindings = { errors: [], warnings: [] };
const NO_MORE = "no further validation rules will be run";
const NOT_CHECKED =
  "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

// Where one of these is wrong, rules could fail for the same reason.
const BLOCKING: ReadonlySet<FieldError["reason"]> = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

/** Evaluates the rules of a schema unless `found` says that the object has the wrong shape. */
export function evaluateRules(
  given: StructuralSchema,
  { object, old, found }: { object: JsonObject; old?: JsonObject | undefined; found: readonly FieldError[] },
): RuleFindings {
  const schema = given as Schema;
  if (!hasRules(schema, {})) return NO_FINDINGS;
  if (found.some(({ reason }) => BLOCKING.has(reason)))
    return { errors: [invalidError("", null, NOT_CHECKED)], warnings: [] };
  const failures = findFailures({ object, old, schema, definitions: {} });
  return {
    errors: failures.filter(({ isForgiven }) => !isForgiven).map(errorOf),
    warnings: failures.filter(({ isForgiven }) => isForgiven).map((failure) => fieldErrorText(errorOf(failure))),
  };
}

function errorOf(failure: RuleFailure): FieldError {
  const { steps, type, kind, message, rule } = failure;
  const path = pathOf(steps);
  const name = rule.message?.trim() || rule.rule.trim();
  switch (kind) {
    case "broken":
      return brokenError(failure, path);
    case "budget":
      return invalidError(path, type, `validation failed due to running out of cost budget, ${NO_MORE}`);
    case "limit":
      return invalidError(
        path,
        type,
        `'operation cancelled: actual cost limit exceeded': ${NO_MORE} due to call cost exceeds limit for rule: ${name}`,
      );
    default:
      return invalidError(
        path,
        type,
        message.startsWith("no such overload")
          ? `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${name}`
          : `${message} evaluating rule: ${name}`,
      );
  }
}

function brokenError({ value, type, rule, message }: RuleFailure, field: string): FieldError {
  const isComposed = type === "object" || type === "array";
  switch (rule.reason) {
    case "FieldValueForbidden":
      return forbiddenError(field, message);
    case "FieldValueRequired":
      return requiredError(field, message);
    case "FieldValueDuplicate":
      return isComposed ? withoutValue(field, rule.reason) : duplicateError(field, value as JsonValue);
    default:
      return isComposed
        ? withoutValue(field, "FieldValueInvalid", message)
        : invalidError(field, value as JsonValue, message);
  }
}

function pathOf(steps: readonly Step[]): string {
  return steps.reduce((path, step) => {
    if (step.kind === "field") return path === "" ? step.name : `${path}.${step.name}`;
    return `${path}[${step.kind === "index" ? step.index : step.name}]`;
  }, "");
}
