// A file of its own in the bundle, with the evaluator: it is loaded with the first rule.
export { findExpressionProblem } from "@gen-operator/schema/cel";
