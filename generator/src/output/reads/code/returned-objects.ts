import type ts from "typescript";
import { loadLibrary } from "../../../model/expression/library.js";
import { unwrap } from "../../../model/expression/unwrap.js";
import { isFunctionNode, type FunctionNode } from "./functions.js";

const compiler = loadLibrary("typescript");

/** Returns the object literals that a function returns, but no object that it builds in another way. */
export function objectsReturnedBy({ body }: FunctionNode): ts.ObjectLiteralExpression[] {
  if (body === undefined) return [];
  return compiler.isBlock(body) ? returnedIn(body) : literalsOf(body);
}

function returnedIn(node: ts.Node): ts.ObjectLiteralExpression[] {
  if (isFunctionNode(node)) return [];
  if (compiler.isReturnStatement(node)) return node.expression === undefined ? [] : literalsOf(node.expression);
  const found: ts.ObjectLiteralExpression[] = [];
  compiler.forEachChild(node, (child) => {
    found.push(...returnedIn(child));
  });
  return found;
}

function literalsOf(expression: ts.Expression): ts.ObjectLiteralExpression[] {
  const plain = unwrap(expression, compiler);
  if (compiler.isConditionalExpression(plain)) return [...literalsOf(plain.whenTrue), ...literalsOf(plain.whenFalse)];
  return compiler.isObjectLiteralExpression(plain) ? [plain] : [];
}

/** Returns a field of an object literal, as an expression where its value is written there. */
export function fieldOf(object: ts.ObjectLiteralExpression, name: string): ts.ObjectLiteralElementLike | undefined {
  return object.properties.find(
    (property) =>
      (compiler.isPropertyAssignment(property) || compiler.isShorthandPropertyAssignment(property)) &&
      property.name.getText() === name,
  );
}

/** Returns where a condition says what it found; undefined if it says no more than whether it holds. */
export function detailIn(condition: FunctionNode): ts.Node | undefined {
  for (const object of objectsReturnedBy(condition)) {
    const detail = fieldOf(object, "detail");
    const isNothing =
      detail !== undefined &&
      compiler.isPropertyAssignment(detail) &&
      compiler.isIdentifier(detail.initializer) &&
      detail.initializer.text === "undefined";
    if (detail !== undefined && !isNothing) return detail;
  }
  return undefined;
}
