import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { repositoryRoot } from "../support/repository.js";

// Some rules look at the text alone.
let loaded: typeof ts | undefined;
const loadCompiler = () => (loaded ??= loadLibrary("typescript"));

/** The packages whose sources obey the rules of this folder. */
export const packages = ["apiserver", "generator", "runtime", "schema"] as const;

/** A source file, with what it imports. */
export interface SourceFile {
  /** Relative to the repository, with forward slashes. */
  path: string;
  text: string;
  syntax: ts.SourceFile;
  imports: Import[];
}

/** One import or re-export. */
export interface Import {
  line: number;
  specifier: string;
  isTypeOnly: boolean;
  /** The source file behind a relative specifier, relative to the repository. */
  target?: string;
}

/** Reads the hand-written TypeScript files below a folder of the repository; none when there is no such folder. */
export function readSources(folder: string): SourceFile[] {
  const root = join(repositoryRoot, folder);
  if (!existsSync(root)) return [];
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name).replaceAll("\\", "/"))
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts") && !/(^|\/)(dist|node_modules)\//.test(path))
    .sort()
    .map(readSource);
}

let ofPackages: SourceFile[] | undefined;

/** Reads the sources of all packages, once for all files of a process. */
export function readPackageSources(): readonly SourceFile[] {
  return (ofPackages ??= packages.flatMap((name) => readSources(`${name}/src`)));
}

/** Reads a file, which is parsed when somebody asks for what is in it. */
function readSource(path: string): SourceFile {
  const text = readFileSync(join(repositoryRoot, path), "utf8");
  let [syntax, imports]: [ts.SourceFile?, Import[]?] = [];
  const parsed = () => {
    const { createSourceFile, ScriptTarget } = loadCompiler();
    return (syntax ??= createSourceFile(path, text, ScriptTarget.Latest, true));
  };
  return {
    path,
    text,
    get syntax() {
      return parsed();
    },
    get imports() {
      return (imports ??= importsOf(path, parsed()));
    },
  };
}

function importsOf(path: string, syntax: ts.SourceFile): Import[] {
  const compiler = loadCompiler();
  const imports: Import[] = [];
  const add = (node: ts.Node, specifier: ts.Node | undefined, isTypeOnly: boolean) => {
    if (specifier === undefined || !compiler.isStringLiteral(specifier)) return;
    const line = syntax.getLineAndCharacterOfPosition(node.getStart(syntax)).line + 1;
    const target = specifier.text.startsWith(".")
      ? relative(repositoryRoot, resolve(repositoryRoot, dirname(path), specifier.text)).replace(/\.js$/, ".ts")
      : undefined;
    imports.push({ line, specifier: specifier.text, isTypeOnly, ...(target === undefined ? {} : { target }) });
  };
  const visit = (node: ts.Node): void => {
    if (compiler.isImportDeclaration(node)) add(node, node.moduleSpecifier, isTypeImport(node, compiler));
    else if (compiler.isExportDeclaration(node)) add(node, node.moduleSpecifier, isTypeExport(node, compiler));
    else if (compiler.isImportTypeNode(node) && compiler.isLiteralTypeNode(node.argument))
      add(node, node.argument.literal, true);
    else if (compiler.isCallExpression(node) && node.expression.kind === compiler.SyntaxKind.ImportKeyword)
      add(node, node.arguments[0], false);
    compiler.forEachChild(node, visit);
  };
  visit(syntax);
  return imports;
}

function isTypeImport({ importClause }: ts.ImportDeclaration, compiler: typeof ts): boolean {
  if (importClause === undefined) return false;
  if (importClause.isTypeOnly) return true;
  const { name, namedBindings } = importClause;
  if (name !== undefined || namedBindings === undefined || !compiler.isNamedImports(namedBindings)) return false;
  return namedBindings.elements.length > 0 && namedBindings.elements.every(({ isTypeOnly }) => isTypeOnly);
}

function isTypeExport({ isTypeOnly, exportClause }: ts.ExportDeclaration, compiler: typeof ts): boolean {
  if (isTypeOnly) return true;
  if (exportClause === undefined || !compiler.isNamedExports(exportClause)) return false;
  return exportClause.elements.length > 0 && exportClause.elements.every((element) => element.isTypeOnly);
}
