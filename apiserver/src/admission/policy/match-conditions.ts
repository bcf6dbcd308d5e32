import type { RequestExpressions } from "@gen-operator/schema/cel";
import { type JsonObject, arrayAt, isObject, stringAt } from "../../json.js";

/** One condition that a webhook or a policy states in CEL. */
export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** Whether the conditions of a webhook or a policy hold; `error` if that cannot be found out, and its failures count. */
export type Match = { readonly matches: boolean } | { readonly error: string };

/** Reads the match conditions of a webhook or a policy. */
export function matchConditionsOf(given: JsonObject): MatchCondition[] {
  return (arrayAt(given, "matchConditions") ?? [])
    .filter(isObject)
    .map((one) => ({ name: stringAt(one, "name") ?? "", expression: stringAt(one, "expression") ?? "" }));
}

/** Asks match conditions: one that is false is enough; one that fails counts unless failures are ignored. */
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
