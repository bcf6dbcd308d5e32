// Rules in CEL. The evaluator takes 100 ms to load, so the first expression loads it, and not the import.
import { compileExpression } from "./compile-rule.js";

export { checkRules } from "./check-rules.js";

/** Returns why an expression cannot be evaluated, such as "the function sortBy is not supported"; undefined if it can. */
export function findExpressionProblem(expression: string): string | undefined {
  const compilation = compileExpression(expression);
  return "problem" in compilation ? compilation.problem : undefined;
}
