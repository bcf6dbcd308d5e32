import { posix } from "node:path";
import type ts from "typescript";
import type { Diagnostic, SourcePosition } from "../diagnostic.js";
import { loadLibrary, unwrap } from "../model/typescript.js";
import { DEEP_CODE } from "./rules.js";

const compiler = loadLibrary("typescript");

/** A file of user code, or an expression of a spec in the form of a file. */
export interface CodeFile {
  /** Path relative to the project. */
  readonly path: string;
  readonly text: string;
  /** Returns the original position of a character. Default: its position in the file */
  locate?(offset: number): SourcePosition | undefined;
}

/** The parsed code of a project, with resolved names. */
export interface SourceProgram {
  fileAt(path: string): ts.SourceFile | undefined;
  /** Returns the declaration that an identifier refers to, across files. */
  declarationOf(identifier: ts.Identifier): ts.Declaration | undefined;
  /** Returns the import that an identifier refers to. */
  importOf(identifier: ts.Identifier): ts.ImportSpecifier | undefined;
  /** Returns the declaration that a file exports under a name. */
  exportOf(file: ts.SourceFile, name: string): ts.Declaration | undefined;
  /** Returns the uses of a declared name. */
  referencesOf(name: ts.Identifier): readonly ts.Identifier[];
  positionOf(node: ts.Node): SourcePosition;
}

const ROOT = "/__project__/";

/** Parses files without type-checking them: generated code may be older than the user's. */
export function createSourceProgram(files: readonly CodeFile[]): SourceProgram {
  const texts = new Map(files.map((file) => [ROOT + file.path, file]));
  const options: ts.CompilerOptions = {
    noLib: true,
    types: [],
    target: compiler.ScriptTarget.ES2022,
    module: compiler.ModuleKind.NodeNext,
    moduleResolution: compiler.ModuleResolutionKind.NodeNext,
  };
  const host: ts.CompilerHost = {
    getSourceFile: (path, target) => {
      const file = texts.get(path);
      return file === undefined ? undefined : compiler.createSourceFile(path, file.text, target, true);
    },
    getDefaultLibFileName: () => "lib.d.ts",
    writeFile: () => undefined,
    getCurrentDirectory: () => ROOT,
    getCanonicalFileName: (path) => path,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
    fileExists: (path) => texts.has(path),
    readFile: (path) => texts.get(path)?.text,
    resolveModuleNameLiterals: (literals, containingFile) =>
      literals.map(({ text }) => {
        const target = text.startsWith(".") ? posix.join(posix.dirname(containingFile), text) : "";
        const path = target.replace(/\.js$/, ".ts").replace(/\.mjs$/, ".mts");
        if (!texts.has(path)) return { resolvedModule: undefined };
        return { resolvedModule: { resolvedFileName: path, extension: compiler.Extension.Ts } };
      }),
  };
  const program = compiler.createProgram([...texts.keys()], options, host);
  const checker = program.getTypeChecker();

  const followed = (symbol: ts.Symbol | undefined): ts.Symbol | undefined =>
    symbol !== undefined && (symbol.flags & compiler.SymbolFlags.Alias) !== 0
      ? checker.getAliasedSymbol(symbol)
      : symbol;
  const symbolOf = (identifier: ts.Identifier): ts.Symbol | undefined =>
    compiler.isShorthandPropertyAssignment(identifier.parent)
      ? checker.getShorthandAssignmentValueSymbol(identifier.parent)
      : checker.getSymbolAtLocation(identifier);
  const references = new Map<ts.SourceFile, Map<ts.Symbol, ts.Identifier[]>>();
  const referencesIn = (file: ts.SourceFile) => {
    const known = references.get(file);
    if (known !== undefined) return known;
    const found = new Map<ts.Symbol, ts.Identifier[]>();
    const visit = (node: ts.Node): void => {
      if (compiler.isTypeNode(node) && !compiler.isExpressionWithTypeArguments(node)) return;
      if (compiler.isIdentifier(node) && isUse(node)) {
        const symbol = symbolOf(node);
        if (symbol !== undefined) found.set(symbol, [...(found.get(symbol) ?? []), node]);
      }
      compiler.forEachChild(node, visit);
    };
    visit(file);
    references.set(file, found);
    return found;
  };

  return {
    fileAt: (path) => program.getSourceFile(ROOT + path),
    declarationOf: (identifier) => followed(symbolOf(identifier))?.declarations?.[0],
    importOf(identifier) {
      const declaration = symbolOf(identifier)?.declarations?.[0];
      return declaration !== undefined && compiler.isImportSpecifier(declaration) ? declaration : undefined;
    },
    exportOf(file, name) {
      const module = checker.getSymbolAtLocation(file);
      const found = module && checker.getExportsOfModule(module).find((symbol) => symbol.name === name);
      return followed(found)?.declarations?.[0];
    },
    referencesOf(name) {
      const symbol = checker.getSymbolAtLocation(name);
      const uses = symbol === undefined ? undefined : referencesIn(name.getSourceFile()).get(symbol);
      return (uses ?? []).filter((use) => use !== name);
    },
    positionOf(node) {
      const file = node.getSourceFile();
      const start = node.getStart(file);
      const located = texts.get(file.fileName)?.locate?.(start);
      if (located !== undefined) return located;
      const { line, character } = file.getLineAndCharacterOfPosition(start);
      return { file: file.fileName.slice(ROOT.length), line: line + 1, column: character + 1 };
    },
  };
}

/** Returns whether an identifier refers to a value, rather than naming a property or declaring something. */
function isUse(node: ts.Identifier): boolean {
  const { parent } = node;
  if (compiler.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (compiler.isPropertyAssignment(parent)) return parent.initializer === node;
  if (compiler.isBindingElement(parent)) return parent.initializer === node;
  if (compiler.isVariableDeclaration(parent) || compiler.isParameter(parent)) return parent.initializer === node;
  return true;
}

/**
 * Returns the result of an analysis of user code, or a diagnostic if deeply nested code, such as a sum of thousands of strings, overflows the
 * compiler's stack.
 */
export function unlessTooDeep<Result>(look: () => Result, severity: Diagnostic["severity"]): Result | Diagnostic {
  try {
    return look();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return {
      severity,
      ...DEEP_CODE.violation,
      message: "your code cannot be checked: an expression in src/ is nested too deeply",
      hint: "split sums and calls with thousands of parts, or move data into a JSON file",
    };
  }
}

/** A function declaration or expression. */
export type FunctionNode = ts.ArrowFunction | ts.FunctionExpression | ts.FunctionDeclaration | ts.MethodDeclaration;

/** Returns whether a node is a function. */
export function isFunctionNode(node: ts.Node): node is FunctionNode {
  return (
    compiler.isArrowFunction(node) ||
    compiler.isFunctionExpression(node) ||
    compiler.isFunctionDeclaration(node) ||
    compiler.isMethodDeclaration(node)
  );
}

/** Returns the function that an expression evaluates to; undefined if it cannot be determined. */
export function resolveFunction(expression: ts.Expression, program: SourceProgram): FunctionNode | undefined {
  const plain = unwrap(expression, compiler);
  if (isFunctionNode(plain)) return plain;
  if (compiler.isPropertyAccessExpression(plain)) return memberFunctionOf(plain, program);
  return compiler.isIdentifier(plain) ? functionOf(program.declarationOf(plain), program) : undefined;
}

/** Returns the function in a property of a project constant, for example another function of the same external dependent. */
function memberFunctionOf(access: ts.PropertyAccessExpression, program: SourceProgram): FunctionNode | undefined {
  const { expression, name } = access;
  const declaration = compiler.isIdentifier(expression) ? program.declarationOf(expression) : undefined;
  const object = declaration === undefined ? undefined : constantOf(declaration);
  if (object === undefined || !compiler.isObjectLiteralExpression(object)) return undefined;
  // A spread may override the property.
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
  // An overload signature has no body.
  if (compiler.isFunctionDeclaration(declaration)) return declaration.body === undefined ? undefined : declaration;
  const value = constantOf(declaration);
  return value === undefined ? undefined : resolveFunction(value, program);
}

/** Returns the initializer of a `const`. */
export function constantOf(declaration: ts.Declaration): ts.Expression | undefined {
  if (!compiler.isVariableDeclaration(declaration) || declaration.initializer === undefined) return undefined;
  const isConstant = (declaration.parent.flags & compiler.NodeFlags.Const) !== 0;
  return isConstant ? unwrap(declaration.initializer, compiler) : undefined;
}

/** Returns the single expression that a function returns on every path; undefined otherwise. */
export function resultOf({ body }: FunctionNode): ts.Expression | undefined {
  if (body === undefined || !compiler.isBlock(body)) return body;
  const last = body.statements.at(-1);
  const isStraight = body.statements.slice(0, -1).every((statement) => compiler.isVariableStatement(statement));
  return isStraight && last !== undefined && compiler.isReturnStatement(last) ? last.expression : undefined;
}

/** Returns the parameters that receive arguments, without `this`. Empty if the function can access its arguments in another way. */
export function parametersOf(called: FunctionNode | undefined): readonly ts.ParameterDeclaration[] {
  if (called === undefined || takesMore(called)) return [];
  return called.parameters.filter(({ name }) => !(compiler.isIdentifier(name) && name.text === "this"));
}

/** Returns whether a function uses `arguments`. */
export function takesMore(called: FunctionNode): boolean {
  return called.body !== undefined && !compiler.isArrowFunction(called) && usesArguments(called.body);
}

function usesArguments(node: ts.Node): boolean {
  if (compiler.isIdentifier(node) && node.text === "arguments") return true;
  return compiler.forEachChild(node, (child) => usesArguments(child) || undefined) ?? false;
}

/** Returns the object literals in the return statements of a function. Objects that it builds in another way are ignored. */
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

/** Returns a property of an object literal. */
export function fieldOf(object: ts.ObjectLiteralExpression, name: string): ts.ObjectLiteralElementLike | undefined {
  return object.properties.find(
    (property) =>
      (compiler.isPropertyAssignment(property) || compiler.isShorthandPropertyAssignment(property)) &&
      property.name.getText() === name,
  );
}

/** Returns the detail that a condition returns; undefined if it only returns whether it is met. */
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

// Evaluates string expressions that consist of literals and fields of the primary.

/** Value of an expression: a string template, or the path of a field in the argument of the entry function. */
type Plain = { readonly kind: "text"; readonly template: string } | { readonly kind: "field"; readonly path: string[] };

type Bindings = ReadonlyMap<ts.Declaration, Plain>;

/** A function that the runtime calls with the primary, and its program. */
interface PlainScope {
  readonly function: FunctionNode;
  readonly program: SourceProgram;
}

/** Maximum depth of followed calls. */
const MOST_CALLS = 10;

/**
 * Returns a normalized template, such as `${primary.metadata.name}-x`, that is equal for expressions with the same value; undefined if the value
 * depends on anything but literals and fields of the primary.
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

/** Evaluates expressions with bindings for the parameters of the enclosing functions. */
class Reader {
  readonly #program: SourceProgram;
  readonly #bindings: Bindings;
  readonly #depth: number;
  /** Declarations that are being evaluated, to stop at cycles. */
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

  // Two fields may be numbers, whose sum is a number; with a string, the sum is a string.
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
