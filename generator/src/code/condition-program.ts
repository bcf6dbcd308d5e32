import { existsSync } from "node:fs";
import { dirname, posix } from "node:path";
import { fileURLToPath } from "node:url";
import type ts from "typescript";
import { codegenModule } from "../emit/runtime-symbols.js";
import { loadLibrary } from "../model/typescript.js";
import { packageFile } from "../package-file.js";

/** What the compiler says about a part of a file. */
export interface ProgramProblem {
  readonly message: string;
  readonly start: number;
}

/** A part of a file, by offsets. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** What an expression comes to: true or false, or the name of an object. */
export type ExpressionResult = "decision" | "name" | "value";

/** A program that can be asked about its expressions. */
export interface ConditionProgram {
  /** Returns what is wrong with the expression in a range: `result` is what it has to come to. */
  problemsIn(path: string, range: TextRange, result: ExpressionResult): ProgramProblem[];
}

/** A file that exists in memory alone. */
export interface MemoryFile {
  /** Relative to a root of its own. */
  readonly path: string;
  readonly content: string;
  /** Stands for the content, if that is not made yet. */
  readonly digest?: string | undefined;
}

const compiler = loadLibrary("typescript");

// A root that no disk has, so that nothing of the user's project, such as an older generated file, is taken instead.
const ROOT = "/__gen-operator__";

const OPTIONS: ts.CompilerOptions = {
  target: compiler.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts"],
  module: compiler.ModuleKind.NodeNext,
  moduleResolution: compiler.ModuleResolutionKind.NodeNext,
  // A condition sees what it is given and the language, whatever types are installed.
  types: [],
  // Nobody replaces the libraries, and looking for replacements takes longer than reading most of them.
  libReplacement: false,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
};

/** Compiles files in memory against the types of the runtime and of the built-in kinds that the generator came with. */
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
    // Of each file, the compiler asks for the package around it.
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

// What TypeScript says about names that other environments have would mislead: nothing that can be installed helps.
const MISSING_ENVIRONMENT: ReadonlySet<number> = new Set([2580, 2581, 2582, 2583, 2584, 2591, 2592, 2593, 2868]);

function messageOf({ code, messageText }: ts.Diagnostic): string {
  const message = compiler.flattenDiagnosticMessageText(messageText, "\n");
  if (!MISSING_ENVIRONMENT.has(code)) return message;
  return `${/^[^.]*\./.exec(message)?.[0] ?? message} A condition sees primary, secondary, context, live, item and the language itself.`;
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

/** Checks that an expression is true or false, or a promise of that. */
function checkResult(expression: ts.Expression, checker: ts.TypeChecker): ProgramProblem[] {
  const type = checker.getTypeAtLocation(expression);
  const result = checker.getAwaitedType(type) ?? type;
  const start = expression.getStart();
  const isBoolean = checker.isTypeAssignableTo(result, checker.getBooleanType());
  if (isBoolean && (result.flags & compiler.TypeFlags.Any) === 0) return [];
  const text = checker.typeToString(result);
  const isMissing = (result.flags & compiler.TypeFlags.Any) !== 0;
  const advice = isMissing ? "give it a type, for example with a comparison" : adviceFor(result, checker);
  return [{ message: `a condition must be true or false, and this is of type '${text}'; ${advice}`, start }];
}

/** Checks that an expression is a text, or undefined. */
function checkName(expression: ts.Expression, checker: ts.TypeChecker): ProgramProblem[] {
  const type = checker.getTypeAtLocation(expression);
  const isAny = (type.flags & compiler.TypeFlags.Any) !== 0;
  const isText = (part: ts.Type) =>
    (part.flags & compiler.TypeFlags.Undefined) !== 0 || checker.isTypeAssignableTo(part, checker.getStringType());
  if (!isAny && (type.isUnion() ? type.types : [type]).every(isText)) return [];
  const found = checker.typeToString(type);
  const advice = isAny ? "give it a type, for example with `${…}`" : "write another expression";
  const message = `a name must be a text, or undefined for none, and this is of type '${found}'; ${advice}`;
  return [{ message, start: expression.getStart() }];
}

/** Checks that an expression is a text, a number, true or false, or undefined: another value can be told from it. */
function checkValue(expression: ts.Expression, checker: ts.TypeChecker): ProgramProblem[] {
  const type = checker.getTypeAtLocation(expression);
  const isAny = (type.flags & compiler.TypeFlags.Any) !== 0;
  const scalars = [checker.getStringType(), checker.getNumberType(), checker.getBooleanType()];
  const isScalar = (part: ts.Type) =>
    (part.flags & compiler.TypeFlags.Undefined) !== 0 ||
    scalars.some((scalar) => checker.isTypeAssignableTo(part, scalar));
  if (!isAny && (type.isUnion() ? type.types : [type]).every(isScalar)) return [];
  const found = checker.typeToString(type);
  const message = `again must be a text, a number, true, false or undefined, and this is of type '${found}'; use one field`;
  return [{ message, start: expression.getStart() }];
}

function adviceFor(type: ts.Type, checker: ts.TypeChecker): string {
  const isOptional = checker.isTypeAssignableTo(checker.getUndefinedType(), type);
  const rest = checker.getNonNullableType(type);
  if (isOptional && checker.isTypeAssignableTo(rest, checker.getBooleanType())) return "compare it with === true";
  return isOptional ? "compare it, for example with !== undefined" : "compare it with a value";
}

/** What is parsed of libraries and the runtime, which do not change while the generator runs; half the time of a check goes there. */
const libraryFiles = new Map<string, ts.SourceFile | undefined>();

/**
 * Parses a file of a library without its comments, once: they change no type, are most of its text, and cost the compiler more than a
 * regular expression.
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

/** Returns where code finds the types of a module. A class that is declared twice would be two classes. */
export function typesSeenBy(texts: Iterable<string>): (module: string) => string {
  for (const text of texts) if (OTHER_DOOR.test(text)) return typesOf;
  return typesOfCode;
}

/** An import of the runtime that is not one of generated code. */
const OTHER_DOOR = /["']@gen-operator\/runtime(?!\/codegen["'])/;

/** The files with the types of the runtime and of the built-in kinds that were imported so far. */
const ownFiles = new Set<string>();

/** Returns the file that an import of such types leads to; undefined for any other import. Looking for it would take longer than reading it. */
export function ownFileOf(module: string, from: string, typesFor: (module: string) => string): string | undefined {
  const isBeside = module.startsWith(".") && ownFiles.has(from);
  if (!isBeside && !isOwnPackage(module)) return undefined;
  const file = isBeside ? posix.join(posix.dirname(from), module.replace(/\.js$/, ".d.ts")) : typesFor(module);
  ownFiles.add(file);
  return file;
}

/** Tells whether a module is of the runtime or of the built-in kinds, as opposed to a file of the project. */
export function isOwnPackage(module: string): boolean {
  return module.startsWith("@gen-operator/");
}

const found = new Map<string, string>();

/** Returns the file with the types of such a module: it is where Node finds it for the generator. */
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

/** What generated code sees of the runtime, in one file: the compiler reads it in less time than eighty. The published program has it. */
const inOneFile = fileURLToPath(packageFile("dist/codegen.d.ts"));

/** Returns the file with the types of a module for code that sees nothing else of the runtime than generated code does. */
function typesOfCode(module: string): string {
  return module === codegenModule && existsSync(inOneFile) ? inOneFile : typesOf(module);
}
