// A separate file of the bundle with the evaluator, which is loaded with the first expression.
export { declaredNames, findExpressionProblem, findSyntaxProblems } from "@gen-operator/schema/cel";
