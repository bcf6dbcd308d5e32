import { posix } from "node:path";
import type ts from "typescript";
import type { SourcePosition } from "../diagnostic.js";
import { loadLibrary, unwrap } from "../model/typescript.js";
import { type MemoryFile, ownFileOf, parseLibrary, typesSeenBy } from "./condition-program.js";

/** A statement that drops a promise. */
export interface FloatingPromise {
  /** Beginning of the statement, for example `unregister` for `unregister(id)`. */
  readonly expression: string;
  /** True for a list of promises. */
  readonly isList: boolean;
  /** Name of the top-level declaration that contains the statement. */
  readonly declaration?: string | undefined;
  readonly position: SourcePosition;
}

/** Input of {@link findFloatingPromises}. */
export interface PromiseSearch {
  /** Folder of the project. */
  readonly root: string;
  /** Files of the project with their content after the generation. */
  readonly files: readonly MemoryFile[];
  /** Root files of the program. */
  readonly imported: readonly string[];
  /** Files to search for statements. */
  readonly candidates: readonly string[];
}

const compiler = loadLibrary("typescript");
const { SyntaxKind, TypeFlags } = compiler;

/** Returns whether a file has a statement that could drop a promise. Types decide whether it does. */
export function mayDropPromise({ path, content }: MemoryFile): boolean {
  const source = compiler.createSourceFile(path, content, compiler.ScriptTarget.ES2022);
  return statementsIn(source).some(({ expression }) => droppedBy(expression).length > 0);
}

/** Finds the statements that drop a promise, with the semantics of `no-floating-promises` of typescript-eslint. */
export function findFloatingPromises({ root, files, imported, candidates }: PromiseSearch): FloatingPromise[] {
  const program = createProjectProgram(root, files, imported);
  const checker = program.checker;
  return candidates.flatMap((path) => {
    const source = program.fileAt(path);
    if (source === undefined) return [];
    return statementsIn(source).flatMap((statement): FloatingPromise[] => {
      const dropped = droppedBy(statement.expression).find((each) => isDropped(each, checker));
      if (dropped === undefined) return [];
      const { line, character } = source.getLineAndCharacterOfPosition(dropped.getStart(source));
      return [
        {
          expression: nameOf(dropped).getText(source).replace(/\s+/g, " "),
          isList: isListOfPromises(checker.getTypeAtLocation(dropped), dropped, checker),
          declaration: declarationAround(statement, source),
          position: { file: path, line: line + 1, column: character + 1 },
        },
      ];
    });
  });
}

function statementsIn(source: ts.SourceFile): ts.ExpressionStatement[] {
  const found: ts.ExpressionStatement[] = [];
  // Iterative, because deeply nested code would overflow the stack.
  const left: ts.Node[] = [source];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    if (compiler.isExpressionStatement(node)) found.push(node);
    const children: ts.Node[] = [];
    compiler.forEachChild(node, (child) => void children.push(child));
    left.push(...children.reverse());
  }
  return found;
}

/** Returns the parts of an expression whose promises the statement would drop, for example `a()` and `b()` for `ok ? a() : b()`. */
function droppedBy(expression: ts.Expression): ts.Expression[] {
  const dropped: ts.Expression[] = [];
  const left = [expression];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const node = unwrap(next, compiler);
    if (compiler.isConditionalExpression(node)) left.push(node.whenFalse, node.whenTrue);
    else if (compiler.isBinaryExpression(node)) {
      const { kind } = node.operatorToken;
      if (kind === SyntaxKind.CommaToken || isLogical(kind)) left.push(node.right, node.left);
    } else if (!isSettled(node)) dropped.push(node);
  }
  return dropped;
}

/** Returns whether an expression is awaited, marked with `void`, or evaluates to a primitive value. */
function isSettled(node: ts.Expression): boolean {
  return (
    compiler.isAwaitExpression(node) ||
    compiler.isVoidExpression(node) ||
    compiler.isPrefixUnaryExpression(node) ||
    compiler.isPostfixUnaryExpression(node) ||
    compiler.isDeleteExpression(node) ||
    compiler.isTypeOfExpression(node) ||
    compiler.isStringLiteralLike(node)
  );
}

function isLogical(kind: ts.SyntaxKind): boolean {
  return [SyntaxKind.AmpersandAmpersandToken, SyntaxKind.BarBarToken, SyntaxKind.QuestionQuestionToken].includes(kind);
}

function isDropped(expression: ts.Expression, checker: ts.TypeChecker): boolean {
  const type = checker.getTypeAtLocation(expression);
  if (isListOfPromises(type, expression, checker)) return true;
  return isThenable(type, expression, checker) && !isHandled(expression, checker);
}

/** Returns whether the rejection of a promise is handled: by `catch`, by the second argument of `then`, or by either of them before `finally`. */
function isHandled(expression: ts.Expression, checker: ts.TypeChecker): boolean {
  const call = unwrap(expression, compiler);
  if (!compiler.isCallExpression(call)) return false;
  const method = unwrap(call.expression, compiler);
  if (!compiler.isPropertyAccessExpression(method)) return false;
  const isHandler = (handler: ts.Expression | undefined) =>
    handler !== undefined && isCallable(checker.getTypeAtLocation(handler));
  if (method.name.text === "catch") return isHandler(call.arguments[0]);
  if (method.name.text === "then") return isHandler(call.arguments[1]);
  return method.name.text === "finally" && isHandled(method.expression, checker);
}

function isCallable(type: ts.Type): boolean {
  if ((type.flags & TypeFlags.Any) !== 0) return true;
  return partsOf(type).some((part) => part.getCallSignatures().length > 0);
}

/** Returns whether a type, or a member of a union, has a `then` method that takes a function. */
function isThenable(type: ts.Type, at: ts.Node, checker: ts.TypeChecker): boolean {
  return partsOf(checker.getApparentType(type)).some((part) => {
    const method = checker.getApparentType(part).getProperty("then");
    if (method === undefined) return false;
    return checker
      .getTypeOfSymbolAtLocation(method, at)
      .getCallSignatures()
      .some(({ parameters: [first] }) => first && isCallable(checker.getTypeOfSymbolAtLocation(first, at)));
  });
}

function isListOfPromises(type: ts.Type, at: ts.Node, checker: ts.TypeChecker): boolean {
  return partsOf(type)
    .filter((part) => checker.isArrayType(part) || checker.isTupleType(part))
    .some((part) => checker.getTypeArguments(part as ts.TypeReference).some((item) => isThenable(item, at, checker)));
}

function partsOf(type: ts.Type): readonly ts.Type[] {
  return type.isUnion() ? type.types : [type];
}

/** Returns the part of an expression to show in a message; for a call, the called expression. */
function nameOf(expression: ts.Expression): ts.Node {
  return compiler.isCallExpression(expression) ? expression.expression : expression;
}

/** Returns the name of the top-level declaration that contains a node. */
function declarationAround(node: ts.Node, source: ts.SourceFile): string | undefined {
  let top = node;
  while (top.parent !== source) top = top.parent;
  if (compiler.isFunctionDeclaration(top)) return top.name?.text;
  if (!compiler.isVariableStatement(top)) return undefined;
  const declaration = top.declarationList.declarations.find(({ pos, end }) => pos <= node.pos && node.end <= end);
  return declaration !== undefined && compiler.isIdentifier(declaration.name) ? declaration.name.text : undefined;
}

/** The type-checked code of a project. */
interface ProjectProgram {
  readonly checker: ts.TypeChecker;
  /** Returns a source file by its path in the project. */
  fileAt(path: string): ts.SourceFile | undefined;
}

/** Compiler options of a project without tsconfig.json. */
const DEFAULTS: ts.CompilerOptions = {
  target: compiler.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
  module: compiler.ModuleKind.NodeNext,
  strict: true,
};

/**
 * Creates a program of the given files, the types of the runtime and of the built-in kinds that are installed with the generator, and the packages
 * installed in the project. Imports of missing packages have type `any`.
 */
function createProjectProgram(root: string, files: readonly MemoryFile[], imported: readonly string[]): ProjectProgram {
  const folder = root.replaceAll("\\", "/").replace(/\/$/, "");
  const pathOf = (path: string) => `${folder}/${path}`;
  const options = readOptions(folder);
  const host = createHost(folder, new Map(files.map((file) => [pathOf(file.path), file])), options);
  const known = new Set(files.map(({ path }) => path));
  const program = compiler.createProgram(imported.filter((path) => known.has(path)).map(pathOf), options, host);
  return { checker: program.getTypeChecker(), fileAt: (path) => program.getSourceFile(pathOf(path)) };
}

function readOptions(folder: string): ts.CompilerOptions {
  const file = `${folder}/tsconfig.json`;
  // The included files are not needed, and listing them is slow.
  const system = { ...compiler.sys, readDirectory: () => [] };
  const stated = compiler.sys.fileExists(file)
    ? compiler.parseJsonSourceFileConfigFileContent(compiler.readJsonConfigFile(file, system.readFile), system, folder)
        .options
    : DEFAULTS;
  return { ...stated, noEmit: true, skipLibCheck: true, libReplacement: false, composite: false, incremental: false };
}

function createHost(
  folder: string,
  files: ReadonlyMap<string, MemoryFile>,
  options: ts.CompilerOptions,
): ts.CompilerHost {
  const host = compiler.createCompilerHost(options, true);
  const { fileExists, readFile, directoryExists } = host;
  const cache = compiler.createModuleResolutionCache(folder, (path) => path, options);
  const typesFor = typesSeenBy(
    [...files.values()].flatMap(({ digest, content }) => (digest === undefined ? [content] : [])),
  );
  // A generated file on disk that this generation does not emit is outdated.
  const isOutdated = (path: string) => path.startsWith(`${folder}/src/generated/`) && !files.has(path);
  const libraries = posix.dirname(host.getDefaultLibFileName(options).replaceAll("\\", "/"));
  const own = new Set<string>();
  return Object.assign(host, {
    getCurrentDirectory: () => folder,
    getModuleResolutionCache: () => cache,
    jsDocParsingMode: compiler.JSDocParsingMode.ParseNone,
    // Folders of files that are not yet written may be missing.
    directoryExists: (path: string) => path.startsWith(`${folder}/src`) || directoryExists?.(path) !== false,
    fileExists: (path: string) => files.has(path) || (!isOutdated(path) && fileExists(path)),
    readFile: (path: string) => files.get(path)?.content ?? readFile(path),
    getSourceFile: (path: string, target: ts.ScriptTarget | ts.CreateSourceFileOptions) => {
      const file = files.get(path);
      if (file !== undefined) return compiler.createSourceFile(path, file.content, target, true);
      if (isOutdated(path)) return undefined;
      if (own.has(path) || posix.dirname(path) === libraries) return parseLibrary(path, () => readFile(path), target);
      const text = readFile(path);
      return text === undefined ? undefined : compiler.createSourceFile(path, text, target);
    },
    resolveModuleNameLiterals: (
      literals: readonly ts.StringLiteralLike[],
      containingFile: string,
      ...rest: [ts.ResolvedProjectReference | undefined, ts.CompilerOptions, ts.SourceFile]
    ): ts.ResolvedModuleWithFailedLookupLocations[] =>
      literals.map((literal) => {
        const library = ownTypesOf(literal.text, containingFile);
        if (library !== undefined) {
          own.add(library);
          return { resolvedModule: { resolvedFileName: library, extension: compiler.Extension.Dts } };
        }
        const mode = compiler.getModeForUsageLocation(rest[2], literal, options);
        return compiler.resolveModuleName(literal.text, containingFile, options, host, cache, undefined, mode);
      }),
  });

  function ownTypesOf(module: string, from: string): string | undefined {
    try {
      return ownFileOf(module, from, typesFor);
    } catch {
      // A package of ours that is not installed with the generator.
      return undefined;
    }
  }
}
