import type ts from "typescript";
import { unwrap } from "./typescript.js";

/** What a true expression proves of a field of the primary. */
export interface ProvenField {
  /** From the primary: `["spec", "backup"]`. */
  readonly path: readonly string[];
  /** The values that it does not have; `falsy` are all that count as false. */
  readonly without?: readonly ("undefined" | "null" | "falsy")[];
  /** The value that it has. */
  readonly equals?: string | number | boolean;
}

/**
 * Returns what an expression proves of the primary when it is true: by comparisons with undefined, null and literals, by fields that count as
 * true, and by several of them joined by `&&`. What is negated or joined by `||` proves nothing.
 */
export function provenFieldsOf(root: ts.Expression, compiler: typeof ts): ProvenField[] {
  const { SyntaxKind } = compiler;
  const expression = unwrap(root, compiler);
  if (compiler.isBinaryExpression(expression)) {
    const { left, right, operatorToken } = expression;
    if (operatorToken.kind === SyntaxKind.AmpersandAmpersandToken)
      return [...provenFieldsOf(left, compiler), ...provenFieldsOf(right, compiler)];
    if (operatorToken.kind === SyntaxKind.QuestionQuestionToken)
      return constantOf(right, compiler)?.value === false ? provenFieldsOf(left, compiler) : [];
    return [
      ...provenByComparison(left, operatorToken.kind, constantOf(right, compiler), compiler),
      ...provenByComparison(right, operatorToken.kind, constantOf(left, compiler), compiler),
    ];
  }
  const doubted = negatedOf(expression, compiler);
  if (doubted !== undefined) {
    const twice = negatedOf(unwrap(doubted, compiler), compiler);
    return twice === undefined ? [] : provenFieldsOf(twice, compiler);
  }
  if (isBooleanCall(expression, compiler)) return provenFieldsOf(expression.arguments[0]!, compiler);
  return proven(expression, { without: ["falsy"] }, compiler);
}

interface Constant {
  readonly value: string | number | boolean | null | undefined;
}

type Proof = Omit<ProvenField, "path">;

function provenByComparison(
  field: ts.Expression,
  operator: ts.SyntaxKind,
  constant: Constant | undefined,
  compiler: typeof ts,
): ProvenField[] {
  if (constant === undefined) return [];
  const { SyntaxKind } = compiler;
  const { value } = constant;
  if (operator === SyntaxKind.EqualsEqualsEqualsToken)
    return value == null ? [] : proven(field, { equals: value }, compiler);
  if (value != null) return [];
  if (operator === SyntaxKind.ExclamationEqualsToken)
    return proven(field, { without: ["undefined", "null"] }, compiler);
  if (operator !== SyntaxKind.ExclamationEqualsEqualsToken) return [];
  return proven(field, { without: [value === null ? "null" : "undefined"] }, compiler);
}

function proven(expression: ts.Expression, proof: Proof, compiler: typeof ts): ProvenField[] {
  const access = accessOf(expression, compiler);
  if (access === undefined || access.path.length === 0) return [];
  const { path, isWhole } = access;
  if (isWhole) return [{ path, ...proof }];
  // What was read of the field, or what its method returned, is there, and so the field is.
  const isThere = proof.equals !== undefined || proof.without?.some((each) => each !== "null") === true;
  return isThere ? [{ path, without: ["undefined", "null"] }] : [];
}

interface Access {
  readonly path: readonly string[];
  /** Whether the path leads to the value itself, and not to something that it was taken from. */
  readonly isWhole: boolean;
}

/** Returns the field of the primary that an expression reads; undefined if it reads something else. */
function accessOf(node: ts.Expression, compiler: typeof ts): Access | undefined {
  const expression = unwrap(node, compiler);
  if (compiler.isIdentifier(expression)) return expression.text === "primary" ? { path: [], isWhole: true } : undefined;
  if (compiler.isCallExpression(expression)) {
    const callee = unwrap(expression.expression, compiler);
    return isAccess(callee, compiler) ? partOf(callee.expression, undefined, compiler) : undefined;
  }
  if (!isAccess(expression, compiler)) return undefined;
  return partOf(expression.expression, nameIn(expression, compiler), compiler);
}

// Without a name it is something else of the object, such as an item.
function partOf(node: ts.Expression, name: string | undefined, compiler: typeof ts): Access | undefined {
  const object = accessOf(node, compiler);
  if (object === undefined) return undefined;
  const { path, isWhole } = object;
  return isWhole && name !== undefined ? { path: [...path, name], isWhole } : { path, isWhole: false };
}

function isAccess(
  node: ts.Expression,
  compiler: typeof ts,
): node is ts.PropertyAccessExpression | ts.ElementAccessExpression {
  return compiler.isPropertyAccessExpression(node) || compiler.isElementAccessExpression(node);
}

function nameIn(
  access: ts.PropertyAccessExpression | ts.ElementAccessExpression,
  compiler: typeof ts,
): string | undefined {
  if (compiler.isPropertyAccessExpression(access)) return access.name.text;
  const { argumentExpression } = access;
  return compiler.isStringLiteralLike(argumentExpression) ? argumentExpression.text : undefined;
}

function negatedOf(node: ts.Expression, compiler: typeof ts): ts.Expression | undefined {
  const isNegated = compiler.isPrefixUnaryExpression(node) && node.operator === compiler.SyntaxKind.ExclamationToken;
  return isNegated ? node.operand : undefined;
}

function isBooleanCall(node: ts.Expression, compiler: typeof ts): node is ts.CallExpression {
  if (!compiler.isCallExpression(node) || node.arguments.length !== 1) return false;
  const { expression } = node;
  return compiler.isIdentifier(expression) && expression.text === "Boolean";
}

function constantOf(node: ts.Expression, compiler: typeof ts): Constant | undefined {
  const { SyntaxKind } = compiler;
  const expression = unwrap(node, compiler);
  if (compiler.isStringLiteralLike(expression)) return { value: expression.text };
  if (compiler.isNumericLiteral(expression)) return numberOf(Number(expression.text));
  if (compiler.isPrefixUnaryExpression(expression) && expression.operator === SyntaxKind.MinusToken) {
    const { operand } = expression;
    return compiler.isNumericLiteral(operand) ? numberOf(-Number(operand.text)) : undefined;
  }
  if (compiler.isIdentifier(expression)) return expression.text === "undefined" ? { value: undefined } : undefined;
  if (expression.kind === SyntaxKind.NullKeyword) return { value: null };
  const isTrue = expression.kind === SyntaxKind.TrueKeyword;
  return isTrue || expression.kind === SyntaxKind.FalseKeyword ? { value: isTrue } : undefined;
}

// There is no literal for an endless one.
function numberOf(value: number): Constant | undefined {
  return Number.isFinite(value) ? { value } : undefined;
}
