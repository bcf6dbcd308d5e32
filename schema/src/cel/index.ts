// Rules in CEL. The evaluator takes 100 ms to load, so the first expression loads it, and not the import.
import { compileExpression } from "./compile.js";

export { checkExpression } from "./check/check-expression.js";
export { declaredNames, type DeclaredNames } from "./check/declared-names.js";
export type { CheckedExpression, CheckOptions } from "./check/checked-expression.js";
export { longNameOfType, typeOfSchema, type CheckedType } from "./check/types.js";
export { estimateCost } from "./cost/estimate-cost.js";
export { LARGEST_REQUEST, sizedTypeOf, type SizedType } from "./schema-types.js";
export { OBJECT_LIMIT } from "./budget.js";
export { compileExpression, type Compilation } from "./compile.js";
export { applyConfigurationOf, jsonPatchOf } from "./patch-values.js";
export { RequestExpressions, type ExpressionResult } from "./admission-policy.js";
export type { AccessQuestion, RequestSurroundings } from "./functions/requests.js";
export { checkRules } from "./check-rules.js";
export { canonicalExpression } from "./syntax/canonical-expression.js";
export { findSyntaxProblems, type SyntaxProblem } from "./syntax/find-problems.js";
export { findFailures, type CheckedObject, type RuleFailure } from "./rules.js";
export { parseFieldPath, type Step } from "./field-path.js";
export { hasRules } from "../values/schema.js";

/** Returns why an expression cannot be evaluated, such as "the function sortBy is not supported"; undefined if it can. */
export function findExpressionProblem(expression: string): string | undefined {
  const compilation = compileExpression(expression);
  return "problem" in compilation ? compilation.problem : undefined;
}
