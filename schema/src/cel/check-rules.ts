import type { Definitions, Schema, ValidationRule } from "../values/schema.js";
import { join, type SchemaProblem } from "../values/check-value.js";
import { findFailures, type RuleFailure } from "./rules.js";

/** Checks an object of a custom kind against the rules of its schema, as the API server does when the object is created. */
export function checkRules(
  object: Record<string, unknown>,
  schema: Schema,
  definitions: Definitions,
): readonly SchemaProblem[] {
  return findFailures({ object, schema, definitions }).map((failure) => {
    const { rule, kind, message } = failure;
    const place = pathOf(failure);
    const text = kind === "broken" ? message : `${message} evaluating rule: ${nameOf(rule)}`;
    return { path: place === "" ? "<root>" : place, message: text };
  });
}

function pathOf({ steps }: RuleFailure): string {
  return steps.reduce<string>((path, step) => {
    return step.kind === "index" ? `${path}[${step.index}]` : join(path, step.name);
  }, "");
}

function nameOf({ rule, message }: ValidationRule): string {
  return message?.trim() || rule.trim();
}
