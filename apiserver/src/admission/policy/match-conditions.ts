import type { RequestExpressions } from "@gen-operator/schema/cel";
import { type JsonObject, arrayAt, isObject, stringAt } from "../../json.js";

/** A match condition of a webhook or policy. */
export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** The result of match conditions; `error` if an expression fails and the failurePolicy is Fail. */
export type Match = { readonly matches: boolean } | { readonly error: string };

/** Parses the match conditions of a webhook or policy. */
export function matchConditionsOf(given: JsonObject): MatchCondition[] {
  return (arrayAt(given, "matchConditions") ?? [])
    .filter(isObject)
    .map((one) => ({ name: stringAt(one, "name") ?? "", expression: stringAt(one, "expression") ?? "" }));
}

/** Evaluates match conditions. One false condition is enough not to match; errors count unless the failurePolicy is Ignore. */
export function evaluateConditions(
  conditions: readonly MatchCondition[],
  expressions: RequestExpressions,
  failurePolicy: "Fail" | "Ignore",
): Match {
  const errors: string[] = [];
  for (const { expression } of conditions) {
    const result = expressions.evaluate(expression);
    if ("error" in result) errors.push(result.error);
    else if (result.value !== true) return { matches: false };
  }
  if (errors.length === 0) return { matches: true };
  if (failurePolicy === "Ignore") return { matches: false };
  return { error: errors.length === 1 ? errors[0]! : `[${errors.join(", ")}]` };
}
