import type ts from "typescript";
import { excessOf } from "./expression.js";
import { loadLibrary } from "./library.js";

/** What an expression comes to. */
export interface Constant {
  readonly value: unknown;
}

type Operation = (left: never, right: never) => unknown;

const OPERATIONS: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ["===", (left, right) => left === right],
  ["!==", (left, right) => left !== right],
  ["==", (left, right) => left == right],
  ["!=", (left, right) => left != right],
  ["<", (left, right) => left < right],
  ["<=", (left, right) => left <= right],
  [">", (left, right) => left > right],
  [">=", (left, right) => left >= right],
]);

/**
 * Returns what an expression always comes to; undefined if it depends on something. What is in `absent`, such as `live` or `secondary.web`,
 * is taken for not there.
 */
export function constantValueOf(text: string, absent: ReadonlySet<string> = new Set()): Constant | undefined {
  if (excessOf(text) !== undefined) return undefined;
  const compiler = loadLibrary("typescript");
  const source = compiler.createSourceFile("when.ts", `(\n${text}\n)`, compiler.ScriptTarget.ES2022);
  const [statement] = source.statements;
  if (statement === undefined || !compiler.isExpressionStatement(statement)) return undefined;
  return evaluate(statement.expression, { compiler, source, absent });
}

interface Surroundings {
  readonly compiler: typeof ts;
  readonly source: ts.SourceFile;
  readonly absent: ReadonlySet<string>;
}

function evaluate(node: ts.Expression, around: Surroundings): Constant | undefined {
  const { compiler } = around;
  if (compiler.isParenthesizedExpression(node) || compiler.isAsExpression(node) || compiler.isNonNullExpression(node))
    return evaluate(node.expression, around);
  if (compiler.isStringLiteralLike(node)) return { value: node.text };
  if (compiler.isNumericLiteral(node)) return { value: Number(node.text) };
  if (compiler.isIdentifier(node))
    return node.text === "undefined" || around.absent.has(node.text) ? { value: undefined } : undefined;
  if (compiler.isPrefixUnaryExpression(node)) return evaluateNot(node, around);
  if (compiler.isBinaryExpression(node)) return evaluateBinary(node, around);
  if (compiler.isConditionalExpression(node)) return evaluateChoice(node, around);
  if (compiler.isPropertyAccessExpression(node) || compiler.isElementAccessExpression(node))
    return evaluateField(node, around);
  const { TrueKeyword, FalseKeyword, NullKeyword } = compiler.SyntaxKind;
  if (node.kind === NullKeyword) return { value: null };
  return node.kind === TrueKeyword || node.kind === FalseKeyword ? { value: node.kind === TrueKeyword } : undefined;
}

function evaluateNot({ operator, operand }: ts.PrefixUnaryExpression, around: Surroundings): Constant | undefined {
  if (operator !== around.compiler.SyntaxKind.ExclamationToken) return undefined;
  const constant = evaluate(operand, around);
  return constant === undefined ? undefined : { value: !constant.value };
}

function evaluateBinary({ left, right, operatorToken }: ts.BinaryExpression, around: Surroundings) {
  const operator = operatorToken.getText(around.source);
  const [first, second] = [evaluate(left, around), evaluate(right, around)];
  // What a condition comes to is all that counts, so it does not matter which side it depends on.
  if (operator === "&&") return decided(first, second, false);
  if (operator === "||") return decided(first, second, true);
  if (operator === "??") return first === undefined || first.value != null ? first : second;
  const operation = OPERATIONS.get(operator);
  if (operation === undefined || first === undefined || second === undefined) return undefined;
  return { value: operation(first.value as never, second.value as never) };
}

function decided(first: Constant | undefined, second: Constant | undefined, by: boolean): Constant | undefined {
  const isDecided = [first, second].some((constant) => constant !== undefined && Boolean(constant.value) === by);
  if (isDecided) return { value: by };
  return first === undefined || second === undefined ? undefined : { value: !by };
}

function evaluateChoice({ condition, whenTrue, whenFalse }: ts.ConditionalExpression, around: Surroundings) {
  const constant = evaluate(condition, around);
  if (constant !== undefined) return evaluate(constant.value ? whenTrue : whenFalse, around);
  const [first, second] = [evaluate(whenTrue, around), evaluate(whenFalse, around)];
  return first !== undefined && second !== undefined && first.value === second.value ? first : undefined;
}

function evaluateField(
  node: ts.PropertyAccessExpression | ts.ElementAccessExpression,
  around: Surroundings,
): Constant | undefined {
  const { compiler, absent } = around;
  const field = compiler.isPropertyAccessExpression(node) ? node.name : node.argumentExpression;
  const name = compiler.isIdentifier(field) || compiler.isStringLiteralLike(field) ? field.text : undefined;
  const { expression } = node;
  const isSecondary = compiler.isIdentifier(expression) && expression.text === "secondary";
  if (isSecondary) return name !== undefined && absent.has(`secondary.${name}`) ? { value: undefined } : undefined;
  // What is read of nothing, with `?.` or behind it, is nothing; without it the condition fails, which is no value.
  const isOptional = (node.flags & compiler.NodeFlags.OptionalChain) !== 0;
  const object = isOptional ? evaluate(expression, around) : undefined;
  return object !== undefined && object.value == null ? { value: undefined } : undefined;
}
