// A file of its own in the bundle, with the evaluator: it is loaded with the first expression.
export { declaredNames, findExpressionProblem, findSyntaxProblems } from "@gen-operator/schema/cel";
