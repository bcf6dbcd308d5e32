import { existsSync } from "node:fs";
import { dirname, posix } from "node:path";
import { fileURLToPath } from "node:url";
import type ts from "typescript";
import { codegenModule } from "../emit/runtime-symbols.js";
import { loadLibrary } from "../model/typescript.js";
import { packageFile } from "../package-file.js";

/** A problem that the compiler reports in a part of a file. */
export interface ProgramProblem {
  readonly message: string;
  readonly start: number;
}

/** A range of offsets in a file. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** Required result of an expression: `decision` is a boolean, `name` a string or undefined, `value` a scalar or undefined. */
export type ExpressionResult = "decision" | "name" | "value";

/** A compiled program whose expressions can be checked one by one. */
export interface ConditionProgram {
  /** Returns the problems of the expression in a range. `result` is its required result. */
  problemsIn(path: string, range: TextRange, result: ExpressionResult): ProgramProblem[];
}

/** A file that exists only in memory. */
export interface MemoryFile {
  /** Path relative to the virtual root of the program. */
  readonly path: string;
  readonly content: string;
  /** Replaces the content in cache keys if the content is not generated yet. */
  readonly digest?: string | undefined;
}

const compiler = loadLibrary("typescript");

// A root that does not exist on disk, so that no file of the project, such as outdated generated code, is resolved instead.
const ROOT = "/__gen-operator__";

const OPTIONS: ts.CompilerOptions = {
  target: compiler.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts"],
  module: compiler.ModuleKind.NodeNext,
  moduleResolution: compiler.ModuleResolutionKind.NodeNext,
  // A condition sees its arguments and the language, regardless of the installed types.
  types: [],
  // Looking for replacements of the lib files takes longer than reading most of them.
  libReplacement: false,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
};

/** Compiles files in memory against the types of the runtime and of the built-in kinds that are installed with the generator. */
export function createConditionProgram(files: readonly MemoryFile[]): ConditionProgram {
  const texts = new Map(files.map(({ path, content }) => [`${ROOT}/${path}`, content]));
  const host = createHost(texts);
  const roots = [...texts.keys()].filter((path) => path.endsWith(".probe.ts"));
  const program = compiler.createProgram(roots, OPTIONS, host);
  const checker = program.getTypeChecker();
  return {
    problemsIn(path, range, result) {
      const source = program.getSourceFile(`${ROOT}/${path}`);
      if (source === undefined) throw new Error(`${path} is not part of the program`);
      const problems = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
        .filter(({ start = 0 }) => start >= range.start && start <= range.end)
        .map((diagnostic) => ({ message: messageOf(diagnostic), start: diagnostic.start ?? range.start }));
      if (problems.length > 0) return problems;
      const expression = expressionIn(source, range);
      if (result === "value") return checkValue(expression, checker);
      return result === "name" ? checkName(expression, checker) : checkResult(expression, checker);
    },
  };
}

function createHost(texts: ReadonlyMap<string, string>): ts.CompilerHost {
  const host = compiler.createCompilerHost(OPTIONS);
  const { fileExists, readFile } = host;
  const cache = compiler.createModuleResolutionCache(ROOT, (path) => path, OPTIONS);
  const typesFor = typesSeenBy(texts.values());
  return Object.assign(host, {
    getCurrentDirectory: () => ROOT,
    // The compiler looks up the enclosing package of every file.
    getModuleResolutionCache: () => cache,
    jsDocParsingMode: compiler.JSDocParsingMode.ParseNone,
    directoryExists: undefined,
    fileExists: (path: string) => texts.has(path) || (!path.startsWith(ROOT) && fileExists(path)),
    readFile: (path: string) => texts.get(path) ?? readFile(path),
    getSourceFile: (path: string, options: ts.ScriptTarget | ts.CreateSourceFileOptions) => {
      const text = texts.get(path);
      if (text !== undefined) return compiler.createSourceFile(path, text, options);
      return parseLibrary(path, () => readFile(path), options);
    },
    resolveModuleNameLiterals: (
      literals: readonly ts.StringLiteralLike[],
      containingFile: string,
      ...rest: [unknown, ts.CompilerOptions, ts.SourceFile]
    ): ts.ResolvedModuleWithFailedLookupLocations[] =>
      literals.map((literal) => {
        const own = ownFileOf(literal.text, containingFile, typesFor);
        if (own !== undefined) return { resolvedModule: { resolvedFileName: own, extension: compiler.Extension.Dts } };
        const mode = compiler.getModeForUsageLocation(rest[2], literal, OPTIONS);
        return compiler.resolveModuleName(literal.text, containingFile, OPTIONS, host, cache, undefined, mode);
      }),
  });
}

// TypeScript suggests installing types for these globals, which would not help: conditions never see them.
const MISSING_ENVIRONMENT: ReadonlySet<number> = new Set([2580, 2581, 2582, 2583, 2584, 2591, 2592, 2593, 2868]);

function messageOf({ code, messageText }: ts.Diagnostic): string {
  const message = compiler.flattenDiagnosticMessageText(messageText, "\n");
  if (!MISSING_ENVIRONMENT.has(code)) return message;
  return `${/^[^.]*\./.exec(message)?.[0] ?? message} A condition can use primary, secondary, context, live, item and the built-ins of JavaScript.`;
}

function expressionIn(source: ts.SourceFile, { start, end }: TextRange): ts.Expression {
  const find = (node: ts.Node): ts.Expression | undefined => {
    if (compiler.isParenthesizedExpression(node) && node.getStart(source) < start && node.getEnd() > end)
      return node.expression;
    return compiler.forEachChild(node, find);
  };
  const found = find(source);
  if (found === undefined) throw new Error("an expression is not where it was put");
  return found;
}

/** Checks that the type of an expression is boolean, or a promise of boolean. */
function checkResult(expression: ts.Expression, checker: ts.TypeChecker): ProgramProblem[] {
  const type = checker.getTypeAtLocation(expression);
  const result = checker.getAwaitedType(type) ?? type;
  const start = expression.getStart();
  const isBoolean = checker.isTypeAssignableTo(result, checker.getBooleanType());
  if (isBoolean && (result.flags & compiler.TypeFlags.Any) === 0) return [];
  const text = checker.typeToString(result);
  const isMissing = (result.flags & compiler.TypeFlags.Any) !== 0;
  const advice = isMissing ? "give it a type, for example with a comparison" : adviceFor(result, checker);
  return [{ message: `a condition must be a boolean, found type '${text}'; ${advice}`, start }];
}

/** Checks that the type of an expression is string or undefined. */
function checkName(expression: ts.Expression, checker: ts.TypeChecker): ProgramProblem[] {
  const type = checker.getTypeAtLocation(expression);
  const isAny = (type.flags & compiler.TypeFlags.Any) !== 0;
  const isText = (part: ts.Type) =>
    (part.flags & compiler.TypeFlags.Undefined) !== 0 || checker.isTypeAssignableTo(part, checker.getStringType());
  if (!isAny && (type.isUnion() ? type.types : [type]).every(isText)) return [];
  const found = checker.typeToString(type);
  const advice = isAny ? "give it a type, for example with `${…}`" : "use another expression";
  const message = `a name must be a string or undefined, found type '${found}'; ${advice}`;
  return [{ message, start: expression.getStart() }];
}

/** Checks that the type of an expression is a scalar or undefined, so that changes of the value can be detected. */
function checkValue(expression: ts.Expression, checker: ts.TypeChecker): ProgramProblem[] {
  const type = checker.getTypeAtLocation(expression);
  const isAny = (type.flags & compiler.TypeFlags.Any) !== 0;
  const scalars = [checker.getStringType(), checker.getNumberType(), checker.getBooleanType()];
  const isScalar = (part: ts.Type) =>
    (part.flags & compiler.TypeFlags.Undefined) !== 0 ||
    scalars.some((scalar) => checker.isTypeAssignableTo(part, scalar));
  if (!isAny && (type.isUnion() ? type.types : [type]).every(isScalar)) return [];
  const found = checker.typeToString(type);
  const message = `again must be a string, a number, a boolean or undefined, found type '${found}'; use a single field`;
  return [{ message, start: expression.getStart() }];
}

function adviceFor(type: ts.Type, checker: ts.TypeChecker): string {
  const isOptional = checker.isTypeAssignableTo(checker.getUndefinedType(), type);
  const rest = checker.getNonNullableType(type);
  if (isOptional && checker.isTypeAssignableTo(rest, checker.getBooleanType())) return "compare it with === true";
  return isOptional ? "compare it, for example with !== undefined" : "compare it with a value";
}

/**
 * Parsed files of libraries and the runtime, by path. They do not change while the generator runs, and parsing them takes half the time of a check.
 */
const libraryFiles = new Map<string, ts.SourceFile | undefined>();

/**
 * Parses a file of a library without its doc comments, and caches the result.
 *
 * Comments do not affect types but are most of the text, and the compiler takes longer to skip them than a regular expression to remove them.
 */
export function parseLibrary(
  path: string,
  read: () => string | undefined,
  options: ts.ScriptTarget | ts.CreateSourceFileOptions,
): ts.SourceFile | undefined {
  if (!libraryFiles.has(path)) {
    const code = read()?.replace(/^[ \t]*\/\*\*[^]*?\*\/[ \t]*$/gm, "");
    libraryFiles.set(path, code === undefined ? undefined : compiler.createSourceFile(path, code, options));
  }
  return libraryFiles.get(path);
}

/**
 * Returns the function that resolves a module to its types. All files use the same declarations: a class declared in two files would be two classes.
 */
export function typesSeenBy(texts: Iterable<string>): (module: string) => string {
  for (const text of texts) if (OTHER_DOOR.test(text)) return typesOf;
  return typesOfCode;
}

/** Matches an import of the runtime other than its entry point for generated code. */
const OTHER_DOOR = /["']@gen-operator\/runtime(?!\/codegen["'])/;

/** Files with the types of the runtime and of the built-in kinds that are resolved so far. */
const ownFiles = new Set<string>();

/**
 * Returns the file that an import of such types resolves to; undefined for any other import. The lookup of the compiler would take longer than
 * reading the file.
 */
export function ownFileOf(module: string, from: string, typesFor: (module: string) => string): string | undefined {
  const isBeside = module.startsWith(".") && ownFiles.has(from);
  if (!isBeside && !isOwnPackage(module)) return undefined;
  const file = isBeside ? posix.join(posix.dirname(from), module.replace(/\.js$/, ".d.ts")) : typesFor(module);
  ownFiles.add(file);
  return file;
}

/** Returns whether a module belongs to the runtime or to the built-in kinds. */
export function isOwnPackage(module: string): boolean {
  return module.startsWith("@gen-operator/");
}

const found = new Map<string, string>();

/** Returns the file with the types of a module of ours, resolved as Node.js resolves the module from the generator. */
export function typesOf(module: string): string {
  const known = found.get(module) ?? findTypes(module);
  found.set(module, known);
  return known;
}

function findTypes(module: string): string {
  const file = fileURLToPath(import.meta.resolve(module))
    .replaceAll("\\", "/")
    .replace(/\.js$/, ".d.ts");
  if (!existsSync(file)) throw new Error(`${module} has no types in ${dirname(file)}`);
  return file;
}

/**
 * The types of the runtime's entry point for generated code, bundled into one file because reading about eighty files is slower. Only in the
 * published package.
 */
const inOneFile = fileURLToPath(packageFile("dist/codegen.d.ts"));

/** Returns the types of a module for code that imports nothing of the runtime but its entry point for generated code. */
function typesOfCode(module: string): string {
  return module === codegenModule && existsSync(inOneFile) ? inOneFile : typesOf(module);
}
