// Tells whether a value comes from what the author of a primary wrote.
//
// Follows constants, destructuring, loops, callbacks, and functions of the project that are called by name. What a function of a library
// returns comes from all that it is called with. A choice between constants, `spec.isLarge ? "a" : "b"`, is none of the author's.
import type ts from "typescript";
import { loadLibrary } from "../../../model/expression/library.js";
import { unwrap } from "../../../model/expression/unwrap.js";
import { isFunctionNode, resolveFunction, type FunctionNode } from "./functions.js";
import type { SourceProgram } from "./source-program.js";

const compiler = loadLibrary("typescript");
const { SyntaxKind } = compiler;

/** What of a primary its author does not choose, or has the right to: the namespace is one in which they may create it. */
const GIVEN: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata.namespace", "metadata.uid"]);

const COMPARISONS: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.EqualsEqualsToken,
  SyntaxKind.EqualsEqualsEqualsToken,
  SyntaxKind.ExclamationEqualsToken,
  SyntaxKind.ExclamationEqualsEqualsToken,
  SyntaxKind.LessThanToken,
  SyntaxKind.LessThanEqualsToken,
  SyntaxKind.GreaterThanToken,
  SyntaxKind.GreaterThanEqualsToken,
  SyntaxKind.InKeyword,
  SyntaxKind.InstanceOfKeyword,
]);

/** Follows values of the primary through one function that the runtime calls. */
export class PrimaryChoices {
  readonly #program: SourceProgram;
  readonly #entry: ts.ParameterDeclaration | undefined;
  /** What functions of the project are called with. */
  readonly #given = new Map<ts.Declaration, Set<ts.Expression>>();
  /** What is being looked at, which may lead back to itself. */
  readonly #open = new Set<ts.Node>();

  constructor(entry: FunctionNode, program: SourceProgram) {
    this.#program = program;
    this.#entry = entry.parameters[0];
  }

  /** Returns the functions of the project that a call runs: the called one, and those that it is given, such as the callback of `map`. */
  functionsOf(call: ts.CallExpression): FunctionNode[] {
    const called = resolveFunction(call.expression, this.#program);
    called?.parameters.forEach((parameter, index) => {
      const given = parameter.dotDotDotToken === undefined ? call.arguments.slice(index, index + 1) : call.arguments;
      this.#note(parameter, given);
    });
    const callee = unwrap(call.expression, compiler);
    const object = compiler.isPropertyAccessExpression(callee) ? [callee.expression] : [];
    const callbacks = call.arguments.flatMap((argument) => resolveFunction(argument, this.#program) ?? []);
    const values = call.arguments.filter((argument) => resolveFunction(argument, this.#program) === undefined);
    for (const callback of callbacks)
      for (const parameter of callback.parameters) this.#note(parameter, [...object, ...values]);
    return called === undefined ? callbacks : [called, ...callbacks];
  }

  /** Tells whether the value of an expression comes from a field that the author of the primary writes. */
  decide(node: ts.Node): boolean {
    if (compiler.isTypeNode(node)) return false;
    const plain = compiler.isExpression(node) ? unwrap(node, compiler) : node;
    const path = compiler.isExpression(plain) ? this.#pathOf(plain) : undefined;
    if (path !== undefined) return isChosen(path);
    if (isFunctionNode(plain)) return this.#once(plain, () => returnsOf(plain).some((result) => this.decide(result)));
    if (compiler.isIdentifier(plain)) return this.#decideName(plain);
    if (compiler.isPropertyAccessExpression(plain) || compiler.isElementAccessExpression(plain))
      return this.decide(plain.expression);
    if (compiler.isConditionalExpression(plain)) return this.decide(plain.whenTrue) || this.decide(plain.whenFalse);
    if (compiler.isBinaryExpression(plain) && COMPARISONS.has(plain.operatorToken.kind)) return false;
    if (compiler.isShorthandPropertyAssignment(plain)) return this.#decideName(plain.name);
    if (compiler.isPropertyAssignment(plain)) return this.decide(plain.initializer);
    if (compiler.isCallExpression(plain)) return this.#decideCall(plain);
    return compiler.forEachChild(plain, (child) => this.decide(child) || undefined) ?? false;
  }

  #decideCall(call: ts.CallExpression): boolean {
    const called = resolveFunction(call.expression, this.#program);
    const functions = this.functionsOf(call);
    if (called !== undefined) return this.decide(called);
    const { expression } = call;
    const object = compiler.isPropertyAccessExpression(expression) ? [expression.expression] : [];
    return [...object, ...call.arguments, ...functions].some((each) => this.decide(each));
  }

  #decideName(name: ts.Identifier): boolean {
    const declaration = this.#program.declarationOf(name);
    return declaration !== undefined && this.#decideDeclaration(declaration);
  }

  #decideDeclaration(declaration: ts.Declaration): boolean {
    return this.#once(declaration, () => {
      if (compiler.isBindingElement(declaration)) {
        const path = this.#pathOfDeclaration(declaration);
        const { initializer } = declaration;
        if (initializer !== undefined && this.decide(initializer)) return true;
        return path === undefined ? this.#decideDeclaration(declaration.parent.parent) : isChosen(path);
      }
      if (compiler.isParameter(declaration))
        return [...(this.#given.get(declaration) ?? [])].some((given) => this.decide(given));
      if (!compiler.isVariableDeclaration(declaration)) return false;
      if (declaration.initializer !== undefined) return this.decide(declaration.initializer);
      const loop = declaration.parent.parent;
      return compiler.isForOfStatement(loop) && this.decide(loop.expression);
    });
  }

  /** Returns where in what the runtime calls the function with a value stands. */
  #pathOf(expression: ts.Expression): readonly string[] | undefined {
    const plain = unwrap(expression, compiler);
    if (compiler.isIdentifier(plain)) {
      const declaration = this.#program.declarationOf(plain);
      return declaration === undefined ? undefined : this.#pathOfDeclaration(declaration);
    }
    if (compiler.isPropertyAccessExpression(plain)) return this.#pathIn(plain.expression, plain.name.text);
    if (!compiler.isElementAccessExpression(plain) || !compiler.isStringLiteralLike(plain.argumentExpression))
      return undefined;
    return this.#pathIn(plain.expression, plain.argumentExpression.text);
  }

  #pathIn(object: ts.Expression, name: string): readonly string[] | undefined {
    const path = this.#pathOf(object);
    return path === undefined ? undefined : [...path, name];
  }

  #pathOfDeclaration(declaration: ts.Declaration): readonly string[] | undefined {
    if (declaration === this.#entry) return [];
    if (compiler.isBindingElement(declaration)) {
      const { name, propertyName = name, parent, dotDotDotToken } = declaration;
      const whole = this.#pathOfDeclaration(parent.parent);
      const isPlain = compiler.isObjectBindingPattern(parent) && compiler.isIdentifier(propertyName);
      if (whole === undefined || !isPlain) return undefined;
      return dotDotDotToken === undefined ? [...whole, propertyName.text] : whole;
    }
    const given = compiler.isParameter(declaration) ? [...(this.#given.get(declaration) ?? [])] : [];
    const [value] = compiler.isVariableDeclaration(declaration) ? [declaration.initializer] : given;
    if (value === undefined || given.length > 1 || this.#open.has(value)) return undefined;
    this.#open.add(value);
    const path = this.#pathOf(value);
    this.#open.delete(value);
    return path;
  }

  #note(parameter: ts.ParameterDeclaration, given: readonly ts.Expression[]): void {
    const known = this.#given.get(parameter) ?? new Set();
    for (const each of given) known.add(each);
    this.#given.set(parameter, known);
  }

  #once(node: ts.Node, decide: () => boolean): boolean {
    if (this.#open.has(node)) return false;
    this.#open.add(node);
    const decided = decide();
    this.#open.delete(node);
    return decided;
  }
}

function isChosen([argument, ...path]: readonly string[]): boolean {
  if (argument === undefined) return true;
  return argument === "primary" && !GIVEN.has(path.slice(0, 1).join(".")) && !GIVEN.has(path.slice(0, 2).join("."));
}

/** Returns what a function returns, in its own words. */
function returnsOf({ body }: FunctionNode): ts.Expression[] {
  if (body === undefined) return [];
  return compiler.isBlock(body) ? returnedIn(body) : [body];
}

function returnedIn(node: ts.Node): ts.Expression[] {
  if (isFunctionNode(node)) return [];
  if (compiler.isReturnStatement(node)) return node.expression === undefined ? [] : [node.expression];
  const found: ts.Expression[] = [];
  compiler.forEachChild(node, (child) => {
    found.push(...returnedIn(child));
  });
  return found;
}
