import type { ValidationRule } from "../values/schema.js";
import { RULE_LIMIT } from "./budget.js";
import { compileExpression, type Bindings } from "./compile.js";

// What the API server takes from an expression at most.
const LONGEST = 5120;

/** Returns the message of a broken rule, and what its expression cost. An expression that gives no good text leaves the rule its fixed message. */
export function messageOf(
  { rule, message, messageExpression }: ValidationRule,
  bindings: Bindings,
  budget: number,
): { readonly message: string; readonly cost: number } {
  const fixed = message?.trim() || `failed rule: ${rule.trim()}`;
  const compilation = messageExpression === undefined ? undefined : compileExpression(messageExpression);
  if (compilation === undefined || "problem" in compilation || budget <= 0) return { message: fixed, cost: 0 };
  const outcome = compilation.expression.evaluate(bindings, Math.min(budget, RULE_LIMIT));
  const text = outcome.kind === "value" && typeof outcome.value === "string" ? outcome.value.trim() : "";
  const isGood = text !== "" && !text.includes("\n") && Buffer.byteLength(text) <= LONGEST;
  return { message: isGood ? text : fixed, cost: outcome.cost };
}
