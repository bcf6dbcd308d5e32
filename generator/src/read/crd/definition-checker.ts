// A file of its own in the bundle, with the evaluator: it is loaded with the first definition or rule.
export { declaredNames, findExpressionProblem, findSyntaxProblems } from "@gen-operator/schema/cel";
export { checkDefinition, defaultDefinition } from "@gen-operator/schema/definitions";
