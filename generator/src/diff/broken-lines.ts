import { relative, resolve, sep } from "node:path";
import type ts from "typescript";
import { slashed } from "../diagnostic.js";
import { loadLibrary } from "../model/expression/library.js";
import type { FileChange } from "../output/files/file-changes.js";
import type { OutputFile } from "../output/files/output-file.js";

/** A line of the user's that compiles with the code generated before, and does not with the code generated now. */
export interface BrokenLine {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** With the number of TypeScript's message: `TS2339: Property …`. */
  readonly message: string;
}

/** Two states of the generated code of a project. */
export interface GeneratedCode {
  readonly before: readonly OutputFile[];
  readonly after: readonly OutputFile[];
  /** What generate changes in the user's code. */
  readonly changes: readonly FileChange[];
}

/** Returns the lines of the user's that stop compiling; undefined if the project cannot be compiled: its packages are not installed. */
export function findBrokenLines(root: string, { before, after, changes }: GeneratedCode): BrokenLine[] | undefined {
  const compiler = loadLibrary("typescript");
  const configFile = compiler.findConfigFile(root, compiler.sys.fileExists);
  if (configFile === undefined || !configFile.startsWith(root)) return undefined;
  const config = compiler.parseJsonConfigFileContent(
    compiler.readConfigFile(configFile, compiler.sys.readFile).config,
    compiler.sys,
    root,
  );
  const now = compile(compiler, { root, config, files: after, changes });
  const known = new Set(compile(compiler, { root, config, files: before, changes: [] }).map(keyOf));
  if (now.some(({ message }) => /^TS(2307|2792): .*'@gen-operator\/runtime/.test(message))) return undefined;
  return now.filter((problem) => !known.has(keyOf(problem)));
}

function keyOf({ file, line, column, message }: BrokenLine): string {
  return `${file}:${line}:${column}:${message}`;
}

interface Compilation {
  readonly root: string;
  readonly config: ts.ParsedCommandLine;
  readonly files: readonly OutputFile[];
  readonly changes: readonly FileChange[];
}

// The generated code takes the place of what is on disk; so does a stub that is not there yet.
function compile(compiler: typeof ts, { root, config, files, changes }: Compilation): BrokenLine[] {
  const generated = resolve(root, "src/generated") + sep;
  const texts = new Map<string, string>();
  for (const { path, content, owner } of files) {
    const file = resolve(root, path);
    if (/\.[cm]?tsx?$/.test(file) && (owner === "generator" || !compiler.sys.fileExists(file)))
      texts.set(file, content);
  }
  for (const { path, after } of changes) if (after !== undefined) texts.set(resolve(root, path), after);
  const deleted = new Set(changes.flatMap(({ path, after }) => (after === undefined ? [resolve(root, path)] : [])));
  const options: ts.CompilerOptions = { ...config.options, noEmit: true, incremental: false, composite: false };
  const host = compiler.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  const isHidden = (file: string) => resolve(file).startsWith(generated) || deleted.has(resolve(file));
  host.fileExists = (file) => texts.has(resolve(file)) || (!isHidden(file) && fileExists(file));
  host.readFile = (file) => texts.get(resolve(file)) ?? (isHidden(file) ? undefined : readFile(file));
  // Folders of what is generated may not be there yet.
  host.directoryExists = (folder) => resolve(folder).startsWith(resolve(root)) || compiler.sys.directoryExists(folder);
  host.getSourceFile = (file, version, ...rest) => {
    const text = texts.get(resolve(file));
    return text === undefined ? getSourceFile(file, version, ...rest) : compiler.createSourceFile(file, text, version);
  };
  const roots = [...new Set([...config.fileNames.filter((file) => !isHidden(file)), ...texts.keys()])];
  const program = compiler.createProgram(roots, options, host);
  return compiler.getPreEmitDiagnostics(program).flatMap(({ file, start, code, messageText }) => {
    if (file === undefined || start === undefined || isHidden(file.fileName)) return [];
    const name = slashed(relative(root, resolve(file.fileName)));
    if (name.startsWith("../") || name.includes("node_modules/")) return [];
    const { line, character } = file.getLineAndCharacterOfPosition(start);
    const message = `TS${code}: ${compiler.flattenDiagnosticMessageText(messageText, " ")}`;
    return [{ file: name, line: line + 1, column: character + 1, message }];
  });
}
