// The typed sources of a package, to find names that are computed at run time.
import { readdirSync } from "node:fs";
import { join, posix } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { repositoryRoot } from "../repository.js";

/** A placeholder for a part that is known only at run time. */
export const OPEN = "…";

/** The maximum number of calls to follow back to the origin of a value. */
const MOST_CALLS = 6;

/** The typed sources of a package. */
export class SourceProgram {
  readonly compiler: typeof ts = loadLibrary("typescript");
  readonly checker: ts.TypeChecker;
  readonly files: readonly ts.SourceFile[];
  #calls: Map<string, ts.CallExpression[]> | undefined;
  #members: Map<string, ts.ObjectLiteralExpression[]> | undefined;

  constructor(folder: string) {
    const { compiler } = this;
    const root = join(repositoryRoot, folder, "src").replaceAll("\\", "/");
    const names = readdirSync(root, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `${root}/${name.replaceAll("\\", "/")}`);
    const options: ts.CompilerOptions = {
      ...{ module: compiler.ModuleKind.NodeNext, target: compiler.ScriptTarget.ES2022, strict: true },
      ...{ skipLibCheck: true, types: [], lib: ["lib.es2023.d.ts"] },
    };
    const host = compiler.createCompilerHost(options);
    const known = new Set(names);
    // Names are in the sources of the package; reading the types of all libraries would take three times as long.
    host.resolveModuleNameLiterals = (literals, from) =>
      literals.map(({ text }) => {
        const file = posix.join(posix.dirname(from), text.replace(/\.js$/, ".ts"));
        const isKnown = text.startsWith(".") && known.has(file);
        return { resolvedModule: isKnown ? { resolvedFileName: file, extension: ".ts" } : undefined };
      });
    const program = compiler.createProgram(names, options, host);
    this.checker = program.getTypeChecker();
    this.files = names.map((name) => program.getSourceFile(name)!);
  }

  /** Calls `visit` for each node of the sources. */
  forEachNode(visit: (node: ts.Node) => void): void {
    const walk = (node: ts.Node): void => {
      visit(node);
      this.compiler.forEachChild(node, walk);
    };
    for (const file of this.files) walk(file);
  }

  /** Returns the strings that an expression may evaluate to: literals, including those that callers pass, with `…` for unknown parts. */
  textsOf(expression: ts.Expression, calls = 0): string[] {
    const { compiler, checker } = this;
    const node = this.#bare(expression);
    if (compiler.isStringLiteralLike(node)) return [node.text];
    if (compiler.isConditionalExpression(node))
      return [...this.textsOf(node.whenTrue, calls), ...this.textsOf(node.whenFalse, calls)];
    if (compiler.isBinaryExpression(node) && /^(\?\?|\|\|)$/.test(node.operatorToken.getText()))
      return [...this.textsOf(node.left, calls), ...this.textsOf(node.right, calls)];
    if (compiler.isTemplateExpression(node)) return [this.#templateOf(node, calls)];
    const known = literalsOf(checker.getTypeAtLocation(node));
    if (known !== undefined) return known;
    const origins = this.originsOf(node, calls);
    return origins === undefined ? [OPEN] : [...new Set(origins.flatMap((each) => this.textsOf(each, calls + 1)))];
  }

  /**
   * Returns the keys that an object may have, including those that callers pass; undefined if nothing is known about it.
   *
   * An unknown part is omitted and passed to `onOpen`.
   */
  keysOf(expression: ts.Expression, onOpen: (part: ts.Expression) => void, calls = 0): string[] {
    const { compiler, checker } = this;
    const node = this.#bare(expression);
    if (compiler.isObjectLiteralExpression(node))
      return node.properties.flatMap((each) => {
        if (compiler.isSpreadAssignment(each)) return this.keysOf(each.expression, onOpen, calls);
        return compiler.isComputedPropertyName(each.name!) ? OPEN : (each.name as ts.Identifier).text;
      });
    if (compiler.isConditionalExpression(node))
      return [node.whenTrue, node.whenFalse].flatMap((each) => this.keysOf(each, onOpen, calls));
    if (compiler.isBinaryExpression(node)) {
      const operator = node.operatorToken.getText();
      if (operator === "&&") return this.keysOf(node.right, onOpen, calls);
      if (/^(\?\?|\|\|)$/.test(operator))
        return [node.left, node.right].flatMap((each) => this.keysOf(each, onOpen, calls));
    }
    const type = checker.getTypeAtLocation(node);
    const parts = (type.isUnion() ? type.types : [type]).filter(
      (part) => (part.flags & compiler.TypeFlags.Object) !== 0 && !checker.isArrayLikeType(part),
    );
    const keys = parts.flatMap((part) => part.getProperties().map(({ name }) => name));
    if (keys.length > 0) return keys;
    // A function from any to any is assumed to return its argument.
    const isAnything = (type.flags & (compiler.TypeFlags.Any | compiler.TypeFlags.Unknown)) !== 0;
    const origins = isAnything ? undefined : this.originsOf(node, calls);
    if (origins !== undefined) return origins.flatMap((each) => this.keysOf(each, onOpen, calls + 1));
    onOpen(node);
    return [];
  }

  /**
   * Returns the expressions that another one may evaluate to: its declaration, the arguments of callers, or the results of a function; undefined if
   * none are known.
   */
  originsOf(expression: ts.Expression, calls = 0): readonly ts.Expression[] | undefined {
    const { compiler, checker } = this;
    const node = this.#bare(expression);
    if (calls > MOST_CALLS) return undefined;
    if (compiler.isCallExpression(node)) return this.#resultsOf(node, calls);
    if (compiler.isIdentifier(node)) return this.#originsOfSymbol(this.#symbolOf(node));
    if (compiler.isPropertyAccessExpression(node)) return this.#originsOfSymbol(checker.getSymbolAtLocation(node.name));
    return undefined;
  }

  /** Returns the value of a member in an object literal; undefined if it is not set. */
  memberOf(object: ts.ObjectLiteralExpression, name: string): ts.Expression | undefined {
    const { compiler } = this;
    for (const each of object.properties) {
      if (each.name === undefined || each.name.getText() !== name) continue;
      if (compiler.isPropertyAssignment(each)) return each.initializer;
      if (compiler.isShorthandPropertyAssignment(each)) return each.name;
    }
    return undefined;
  }

  /** Returns the calls of functions and methods with this name. */
  callsOf(name: string): readonly ts.CallExpression[] {
    if (this.#calls === undefined) {
      const calls = (this.#calls = new Map<string, ts.CallExpression[]>());
      this.forEachNode((node) => {
        if (!this.compiler.isCallExpression(node)) return;
        const callee = this.#calleeName(node.expression);
        if (callee === undefined) return;
        const known = calls.get(callee);
        if (known === undefined) calls.set(callee, [node]);
        else known.push(node);
      });
    }
    return this.#calls.get(name) ?? [];
  }

  #calleeName(callee: ts.Expression): string | undefined {
    const { compiler } = this;
    if (compiler.isIdentifier(callee)) return callee.text;
    return compiler.isPropertyAccessExpression(callee) ? callee.name.text : undefined;
  }

  #bare(expression: ts.Expression): ts.Expression {
    const { compiler } = this;
    let node = expression;
    while (
      compiler.isParenthesizedExpression(node) ||
      compiler.isAsExpression(node) ||
      compiler.isSatisfiesExpression(node) ||
      compiler.isNonNullExpression(node)
    )
      node = node.expression;
    return node;
  }

  #templateOf(node: ts.TemplateExpression, calls: number): string {
    const parts = node.templateSpans.map(({ expression, literal }) => {
      const texts = this.textsOf(expression, calls);
      return `${texts.length === 1 ? texts[0] : OPEN}${literal.text}`;
    });
    return [node.head.text, ...parts].join("");
  }

  #symbolOf(node: ts.Identifier): ts.Symbol | undefined {
    const { compiler, checker } = this;
    const symbol = compiler.isShorthandPropertyAssignment(node.parent)
      ? checker.getShorthandAssignmentValueSymbol(node.parent)
      : checker.getSymbolAtLocation(node);
    return symbol !== undefined && (symbol.flags & compiler.SymbolFlags.Alias) !== 0
      ? checker.getAliasedSymbol(symbol)
      : symbol;
  }

  #originsOfSymbol(symbol: ts.Symbol | undefined): readonly ts.Expression[] | undefined {
    const { compiler, checker } = this;
    const declaration = symbol?.declarations?.[0];
    if (symbol === undefined || declaration === undefined) return undefined;
    if (compiler.isVariableDeclaration(declaration) || compiler.isPropertyAssignment(declaration))
      return declaration.initializer === undefined ? undefined : [declaration.initializer];
    if (compiler.isParameter(declaration)) return this.#argumentsFor(declaration);
    if (compiler.isPropertySignature(declaration) || compiler.isMethodSignature(declaration))
      return this.#membersFor(symbol);
    if (!compiler.isBindingElement(declaration)) return undefined;
    const { parent } = declaration;
    if (compiler.isObjectBindingPattern(parent)) {
      const name = (declaration.propertyName ?? declaration.name) as ts.Identifier;
      const member = checker.getTypeAtLocation(parent).getProperty(name.text);
      return member === symbol ? undefined : this.#originsOfSymbol(member);
    }
    const index = parent.elements.indexOf(declaration);
    const lists = compiler.isVariableDeclaration(parent.parent) ? this.#listsIn(parent.parent.initializer) : [];
    const elements = lists.flatMap((list) => list.elements[index] ?? []);
    return elements.length === 0 ? undefined : elements;
  }

  #listsIn(expression: ts.Expression | undefined): ts.ArrayLiteralExpression[] {
    const { compiler } = this;
    if (expression === undefined) return [];
    const node = this.#bare(expression);
    if (compiler.isConditionalExpression(node))
      return [node.whenTrue, node.whenFalse].flatMap((each) => this.#listsIn(each));
    return compiler.isArrayLiteralExpression(node) ? [node] : [];
  }

  /** Returns the values of a member of an interface in object literals. */
  #membersFor(member: ts.Symbol): readonly ts.Expression[] | undefined {
    const { compiler, checker } = this;
    if (this.#members === undefined) {
      const members = (this.#members = new Map<string, ts.ObjectLiteralExpression[]>());
      this.forEachNode((node) => {
        if (!compiler.isObjectLiteralExpression(node)) return;
        for (const { name } of node.properties)
          if (name !== undefined && compiler.isIdentifier(name))
            members.set(name.text, [...(members.get(name.text) ?? []), node]);
      });
    }
    const values = (this.#members.get(member.name) ?? []).flatMap((object) => {
      const type = checker.getContextualType(object);
      const parts = type?.isUnion() ? type.types : [type];
      const isOf = parts.some((part) =>
        part?.getProperty(member.name)?.declarations?.some((each) => member.declarations?.includes(each)),
      );
      return isOf ? (this.memberOf(object, member.name) ?? []) : [];
    });
    return values.length === 0 ? undefined : values;
  }

  /** Returns the results of a function that is called by its name. */
  #resultsOf({ expression }: ts.CallExpression, calls: number): readonly ts.Expression[] | undefined {
    const { compiler, checker } = this;
    const name = compiler.isPropertyAccessExpression(expression) ? expression.name : expression;
    const found = checker.getSymbolAtLocation(name);
    const { Alias } = compiler.SymbolFlags;
    const symbol = found !== undefined && (found.flags & Alias) !== 0 ? checker.getAliasedSymbol(found) : found;
    const declared = (symbol?.declarations ?? []).filter(
      (each) => compiler.isFunctionDeclaration(each) || compiler.isMethodDeclaration(each),
    );
    const functions: readonly ts.Node[] = declared.length > 0 ? declared : this.#functionsOf(expression, calls + 1);
    const results = functions.flatMap((each) => this.#returnsOf(each));
    return results.length === 0 ? undefined : results;
  }

  #functionsOf(expression: ts.Expression, calls: number): ts.Node[] {
    return (this.originsOf(expression, calls) ?? []).flatMap((each) =>
      this.compiler.isFunctionLike(each) ? each : this.#functionsOf(each, calls + 1),
    );
  }

  #returnsOf(node: ts.Node): ts.Expression[] {
    const { compiler } = this;
    const { body } = node as ts.FunctionLikeDeclaration;
    if (!compiler.isFunctionLike(node) || body === undefined) return [];
    if (!compiler.isBlock(body)) return [body];
    const returns: ts.Expression[] = [];
    const visit = (inner: ts.Node): void => {
      if (compiler.isFunctionLike(inner)) return;
      if (compiler.isReturnStatement(inner) && inner.expression !== undefined) returns.push(inner.expression);
      compiler.forEachChild(inner, visit);
    };
    visit(body);
    return returns;
  }

  /** Returns the arguments for a parameter of a function that is called by its name. */
  #argumentsFor(parameter: ts.ParameterDeclaration): ts.Expression[] | undefined {
    const { compiler, checker } = this;
    const owner = parameter.parent;
    const named = compiler.isArrowFunction(owner) || compiler.isFunctionExpression(owner) ? owner.parent : owner;
    const name = (named as ts.NamedDeclaration).name;
    if (name === undefined || !(compiler.isIdentifier(name) || compiler.isPrivateIdentifier(name))) return undefined;
    const target = checker.getSymbolAtLocation(name);
    const index = owner.parameters.indexOf(parameter);
    const found = this.callsOf(name.text).filter(({ expression }) => {
      const called = checker.getSymbolAtLocation(
        compiler.isPropertyAccessExpression(expression) ? expression.name : expression,
      );
      return called !== undefined && this.#isSame(called, target);
    });
    const values = found.flatMap((call) => call.arguments[index] ?? parameter.initializer ?? []);
    return values.length === 0 ? undefined : values;
  }

  #isSame(called: ts.Symbol, target: ts.Symbol | undefined): boolean {
    const { Alias } = this.compiler.SymbolFlags;
    return ((called.flags & Alias) !== 0 ? this.checker.getAliasedSymbol(called) : called) === target;
  }
}

function literalsOf(type: ts.Type): string[] | undefined {
  const types = type.isUnion() ? type.types : [type];
  const texts = types.flatMap((each) => (each.isStringLiteral() ? [each.value] : []));
  const others = types.filter((each) => !each.isStringLiteral() && !isAbsent(each));
  return texts.length > 0 && others.length === 0 ? texts : undefined;
}

/** Returns whether a type is undefined or null, by TypeScript's TypeFlags. */
function isAbsent({ flags }: ts.Type): boolean {
  const UNDEFINED = 32768;
  const NULL = 65536;
  return (flags & (UNDEFINED | NULL)) !== 0;
}
