import { posix } from "node:path";
import type ts from "typescript";
import type { Diagnostic, SourcePosition } from "../diagnostic.js";
import { loadLibrary } from "../model/typescript.js";
import { DEEP_CODE } from "./rules.js";

/** A file of the user's, or an expression of a spec as if it were one. */
export interface CodeFile {
  /** Relative to the project. */
  readonly path: string;
  readonly text: string;
  /** Returns where a character of it is written. Default: in the file itself. */
  locate?(offset: number): SourcePosition | undefined;
}

/** The code of a project, and what its names refer to. */
export interface SourceProgram {
  fileAt(path: string): ts.SourceFile | undefined;
  /** Returns the declaration that an identifier refers to, also in another file. */
  declarationOf(identifier: ts.Identifier): ts.Declaration | undefined;
  /** Returns the import that an identifier refers to. */
  importOf(identifier: ts.Identifier): ts.ImportSpecifier | undefined;
  /** Returns the declaration that a file exports under a name. */
  exportOf(file: ts.SourceFile, name: string): ts.Declaration | undefined;
  /** Returns the places in which a declared name is used. */
  referencesOf(name: ts.Identifier): readonly ts.Identifier[];
  positionOf(node: ts.Node): SourcePosition;
}

const ROOT = "/__project__/";

/** Parses files. Nothing is type-checked, because generated code may be older than the user's. */
export function createSourceProgram(files: readonly CodeFile[]): SourceProgram {
  const compiler = loadLibrary("typescript");
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
      if (compiler.isIdentifier(node) && isUse(node, compiler)) {
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

/** Tells whether an identifier stands for a value, as opposed to naming a field or declaring something. */
function isUse(node: ts.Identifier, compiler: typeof ts): boolean {
  const { parent } = node;
  if (compiler.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (compiler.isPropertyAssignment(parent)) return parent.initializer === node;
  if (compiler.isBindingElement(parent)) return parent.initializer === node;
  if (compiler.isVariableDeclaration(parent) || compiler.isParameter(parent)) return parent.initializer === node;
  return true;
}

/**
 * Returns what looking at the user's code comes to, or a diagnostic if the code nests so deeply that the compiler's stack ends: a sum of
 * thousands of texts, for example.
 */
export function unlessTooDeep<Result>(look: () => Result, severity: Diagnostic["severity"]): Result | Diagnostic {
  try {
    return look();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return {
      severity,
      ...DEEP_CODE.violation,
      message: "an expression below src/ nests too deeply for your code to be checked",
      hint: "split sums and calls with thousands of parts, or move data into a JSON file",
    };
  }
}
