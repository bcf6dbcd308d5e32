// Rules in CEL. The evaluator takes 100 ms to load, so the first expression loads it, and not the import.
import { compileExpression } from "./compile-rule.js";

export { checkExpression } from "./check/check-expression.js";
export { declaredNames, type DeclaredNames } from "./check/declared-names.js";
export type { CheckedExpression, CheckOptions } from "./check/checked-expression.js";
export { longNameOfType, typeOfSchema, type CheckedType } from "./check/types.js";
export { estimateCost } from "./cost/estimate-cost.js";
export { LARGEST_REQUEST, sizedTypeOf, type SizedType } from "./cost/sized-type.js";
export { OBJECT_LIMIT } from "./budget.js";
export { compileExpression, type Compilation } from "./compile-rule.js";
export { applyConfigurationOf, jsonPatchOf } from "./patch-values.js";
export { RequestExpressions, type ExpressionResult } from "./request-expressions.js";
export type { AccessQuestion, RequestSurroundings } from "./functions/requests.js";
export { checkRules } from "./rules/check-rules.js";
export { canonicalExpression } from "./syntax/canonical-expression.js";
export { findSyntaxProblems, type SyntaxProblem } from "./syntax/find-problems.js";
export { findFailures, type CheckedObject, type RuleFailure } from "./rules/find-failures.js";
export { parseFieldPath, type Step } from "./rules/field-path.js";
export { hasRules } from "./rules/has-rules.js";

/** Returns why an expression cannot be evaluated, such as "the function sortBy is not supported"; undefined if it can. */
export function findExpressionProblem(expression: string): string | undefined {
  const compilation = compileExpression(expression);
  return "problem" in compilation ? compilation.problem : undefined;
}
