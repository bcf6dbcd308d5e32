// What a text is made of, as far as that is plain to see: other texts, and fields of the primary.
import type ts from "typescript";
import { loadLibrary } from "../../../model/expression/library.js";
import { unwrap } from "../../../model/expression/unwrap.js";
import { constantOf, resolveFunction, resultOf, type FunctionNode } from "./functions.js";
import type { SourceProgram } from "./source-program.js";

const compiler = loadLibrary("typescript");

/** What an expression stands for: a text, or a field of what the runtime calls a function with, by its path. */
type Plain = { readonly kind: "text"; readonly template: string } | { readonly kind: "field"; readonly path: string[] };

type Bindings = ReadonlyMap<ts.Declaration, Plain>;

/** A function that the runtime calls with the primary, and where to look for what it uses. */
export interface PlainScope {
  readonly function: FunctionNode;
  readonly program: SourceProgram;
}

/** Functions that call each other are followed so far. */
const MOST_CALLS = 10;

/**
 * Returns a template that is the same for all expressions that always are the same text, such as `${primary.metadata.name}-x`; undefined if
 * there is more in it than texts and fields of the primary.
 */
export function plainTextOf(expression: ts.Expression, { function: entry, program }: PlainScope): string | undefined {
  const [args] = entry.parameters;
  const bindings = new Map<ts.Declaration, Plain>(args === undefined ? [] : [[args, { kind: "field", path: [] }]]);
  return templateOf(new Reader(program, bindings).read(expression));
}

function templateOf(plain: Plain | undefined): string | undefined {
  if (plain?.kind !== "field") return plain?.template;
  return plain.path[0] === "primary" && plain.path.length > 1 ? `\${${plain.path.join(".")}}` : undefined;
}

/** Reads expressions with the parameters of the functions around them. */
class Reader {
  readonly #program: SourceProgram;
  readonly #bindings: Bindings;
  readonly #depth: number;
  /** What is being read, which may lead back to itself. */
  readonly #open = new Set<ts.Declaration>();

  constructor(program: SourceProgram, bindings: Bindings, depth = 0) {
    this.#program = program;
    this.#bindings = bindings;
    this.#depth = depth;
  }

  read(expression: ts.Expression): Plain | undefined {
    const plain = unwrap(expression, compiler);
    if (compiler.isStringLiteralLike(plain)) return { kind: "text", template: plain.text.replaceAll("$", () => "$$") };
    if (compiler.isTemplateExpression(plain)) return this.#readTemplate(plain);
    if (compiler.isBinaryExpression(plain)) return this.#readSum(plain);
    if (compiler.isPropertyAccessExpression(plain)) return this.#fieldOf(plain.expression, plain.name.text);
    if (compiler.isElementAccessExpression(plain) && compiler.isStringLiteralLike(plain.argumentExpression))
      return this.#fieldOf(plain.expression, plain.argumentExpression.text);
    if (compiler.isIdentifier(plain)) return this.#readName(plain);
    return compiler.isCallExpression(plain) ? this.#readCall(plain) : undefined;
  }

  #readTemplate({ head, templateSpans }: ts.TemplateExpression): Plain | undefined {
    let template = head.text.replaceAll("$", () => "$$");
    for (const { expression, literal } of templateSpans) {
      const part = templateOf(this.read(expression));
      if (part === undefined) return undefined;
      template += part + literal.text.replaceAll("$", () => "$$");
    }
    return { kind: "text", template };
  }

  // Two fields may be numbers; with a text the sum is a text.
  #readSum({ left, right, operatorToken }: ts.BinaryExpression): Plain | undefined {
    if (operatorToken.kind !== compiler.SyntaxKind.PlusToken) return undefined;
    const parts = [this.read(left), this.read(right)];
    const [first, second] = parts.map(templateOf);
    if (first === undefined || second === undefined || parts.every((part) => part?.kind === "field")) return undefined;
    return { kind: "text", template: first + second };
  }

  #fieldOf(object: ts.Expression, name: string): Plain | undefined {
    const plain = this.read(object);
    return plain?.kind === "field" ? { kind: "field", path: [...plain.path, name] } : undefined;
  }

  #readName(identifier: ts.Identifier): Plain | undefined {
    const declaration = this.#program.declarationOf(identifier);
    return declaration === undefined ? undefined : this.#readDeclaration(declaration);
  }

  #readDeclaration(declaration: ts.Declaration): Plain | undefined {
    const bound = this.#bindings.get(declaration);
    if (bound !== undefined) return bound;
    if (compiler.isBindingElement(declaration)) return this.#readElement(declaration);
    const constant = constantOf(declaration);
    if (constant === undefined || this.#open.has(declaration)) return undefined;
    this.#open.add(declaration);
    const plain = this.read(constant);
    this.#open.delete(declaration);
    return plain;
  }

  #readElement({ name, propertyName, parent, initializer, dotDotDotToken }: ts.BindingElement): Plain | undefined {
    const field = propertyName ?? name;
    const isPlain = compiler.isObjectBindingPattern(parent) && compiler.isIdentifier(field);
    if (!isPlain || initializer !== undefined || dotDotDotToken !== undefined) return undefined;
    const whole = this.#readDeclaration(parent.parent);
    return whole?.kind === "field" ? { kind: "field", path: [...whole.path, field.text] } : undefined;
  }

  #readCall({ expression, arguments: given }: ts.CallExpression): Plain | undefined {
    const called = resolveFunction(expression, this.#program);
    const result = called === undefined ? undefined : resultOf(called);
    if (called === undefined || result === undefined || this.#depth === MOST_CALLS) return undefined;
    const bindings = new Map<ts.Declaration, Plain>();
    for (const [index, parameter] of called.parameters.entries()) {
      const argument = given[index];
      const value = argument === undefined ? undefined : this.read(argument);
      if (value !== undefined && parameter.dotDotDotToken === undefined) bindings.set(parameter, value);
    }
    return new Reader(this.#program, bindings, this.#depth + 1).read(result);
  }
}
