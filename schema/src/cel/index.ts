// CEL expressions: syntax, type checking, cost estimation, and evaluation in validation rules and admission policies. The evaluator takes 100 ms to
// load and is loaded with the first expression.
import { compileExpression } from "./compile.js";

// Syntax, types and costs
export { findSyntaxProblems, type SyntaxProblem } from "./syntax/find-problems.js";
export { canonicalExpression } from "./syntax/tokens.js";
export { checkExpression, type CheckedExpression, type CheckOptions } from "./check/check-expression.js";
export { declaredNames, type DeclaredNames } from "./check/declarations.js";
export { longNameOfType, type CheckedType } from "./check/types.js";
export { LARGEST_REQUEST, sizedTypeOf, typeOfSchema, type SizedType } from "./schema-types.js";
export { estimateCost } from "./cost/estimate-cost.js";

// Evaluation
export { compileExpression, type Compilation } from "./compile.js";
export { OBJECT_LIMIT } from "./budget.js";

// Validation rules
export { checkRules, findFailures, type CheckedObject, type RuleFailure } from "./rules.js";
export { parseFieldPath, type Step } from "./fields.js";
export { hasRules } from "../values/schema.js";

// Admission policies
export { applyConfigurationOf, jsonPatchOf, RequestExpressions, type ExpressionResult } from "./admission-policy.js";
export type { AccessQuestion, RequestSurroundings } from "./functions/requests.js";

/** Returns why an expression cannot be evaluated, such as "the function sortBy is not supported"; undefined if it can. */
export function findExpressionProblem(expression: string): string | undefined {
  const compilation = compileExpression(expression);
  return "problem" in compilation ? compilation.problem : undefined;
}
