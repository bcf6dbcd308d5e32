import type ts from "typescript";

/** Returns an expression without what only the compiler reads: parentheses, `as`, `<Type>`, `satisfies`, `!`. */
export function unwrap(expression: ts.Expression, compiler: typeof ts): ts.Expression {
  return compiler.isParenthesizedExpression(expression) ||
    compiler.isAsExpression(expression) ||
    compiler.isTypeAssertionExpression(expression) ||
    compiler.isSatisfiesExpression(expression) ||
    compiler.isNonNullExpression(expression)
    ? unwrap(expression.expression, compiler)
    : expression;
}
