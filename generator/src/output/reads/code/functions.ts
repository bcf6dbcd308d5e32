import type ts from "typescript";
import { loadLibrary } from "../../../model/expression/library.js";
import { unwrap } from "../../../model/expression/unwrap.js";
import type { SourceProgram } from "./source-program.js";

const compiler = loadLibrary("typescript");

/** A function whose text is there. */
export type FunctionNode = ts.ArrowFunction | ts.FunctionExpression | ts.FunctionDeclaration | ts.MethodDeclaration;

/** Tells whether a node is a function that can be looked into. */
export function isFunctionNode(node: ts.Node): node is FunctionNode {
  return (
    compiler.isArrowFunction(node) ||
    compiler.isFunctionExpression(node) ||
    compiler.isFunctionDeclaration(node) ||
    compiler.isMethodDeclaration(node)
  );
}

/** Returns the function that an expression stands for; undefined if that cannot be told. */
export function resolveFunction(expression: ts.Expression, program: SourceProgram): FunctionNode | undefined {
  const plain = unwrap(expression, compiler);
  if (isFunctionNode(plain)) return plain;
  if (compiler.isPropertyAccessExpression(plain)) return memberFunctionOf(plain, program);
  return compiler.isIdentifier(plain) ? functionOf(program.declarationOf(plain), program) : undefined;
}

/** Returns the function that a constant of the project has as a member, such as another one of the same external dependent. */
function memberFunctionOf(access: ts.PropertyAccessExpression, program: SourceProgram): FunctionNode | undefined {
  const { expression, name } = access;
  const declaration = compiler.isIdentifier(expression) ? program.declarationOf(expression) : undefined;
  const object = declaration === undefined ? undefined : constantOf(declaration);
  if (object === undefined || !compiler.isObjectLiteralExpression(object)) return undefined;
  // A spread may bring a member of the same name.
  if (object.properties.some((property) => compiler.isSpreadAssignment(property))) return undefined;
  const member = object.properties.find((property) => property.name?.getText() === name.text);
  if (member === undefined) return undefined;
  if (compiler.isMethodDeclaration(member)) return member;
  const value = compiler.isPropertyAssignment(member) ? unwrap(member.initializer, compiler) : undefined;
  return value !== undefined && isFunctionNode(value) ? value : undefined;
}

/** Returns the function that a declaration declares. */
export function functionOf(declaration: ts.Declaration | undefined, program: SourceProgram): FunctionNode | undefined {
  if (declaration === undefined) return undefined;
  // One of several signatures has no body.
  if (compiler.isFunctionDeclaration(declaration)) return declaration.body === undefined ? undefined : declaration;
  const value = constantOf(declaration);
  return value === undefined ? undefined : resolveFunction(value, program);
}

/** Returns what a constant is. */
export function constantOf(declaration: ts.Declaration): ts.Expression | undefined {
  if (!compiler.isVariableDeclaration(declaration) || declaration.initializer === undefined) return undefined;
  const isConstant = (declaration.parent.flags & compiler.NodeFlags.Const) !== 0;
  return isConstant ? unwrap(declaration.initializer, compiler) : undefined;
}

/** Returns what a function returns, if that is one expression in any case. */
export function resultOf({ body }: FunctionNode): ts.Expression | undefined {
  if (body === undefined || !compiler.isBlock(body)) return body;
  const last = body.statements.at(-1);
  const isStraight = body.statements.slice(0, -1).every((statement) => compiler.isVariableStatement(statement));
  return isStraight && last !== undefined && compiler.isReturnStatement(last) ? last.expression : undefined;
}

/** Returns the parameters that stand for arguments: `this` is none. A function that takes more than its parameters say has none. */
export function parametersOf(called: FunctionNode | undefined): readonly ts.ParameterDeclaration[] {
  if (called === undefined || takesMore(called)) return [];
  return called.parameters.filter(({ name }) => !(compiler.isIdentifier(name) && name.text === "this"));
}

/** Tells whether a function may reach its arguments by `arguments`. */
export function takesMore(called: FunctionNode): boolean {
  return called.body !== undefined && !compiler.isArrowFunction(called) && usesArguments(called.body);
}

function usesArguments(node: ts.Node): boolean {
  if (compiler.isIdentifier(node) && node.text === "arguments") return true;
  return compiler.forEachChild(node, (child) => usesArguments(child) || undefined) ?? false;
}
