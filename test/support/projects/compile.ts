import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { repositoryRoot } from "../repository.js";
import { isThorough } from "../runs.js";
import { createTemporaryFolder } from "../temporary-folder.js";
import { linkPackages } from "./link-packages.js";

const compiler = loadLibrary("typescript");

/** Compiler options in addition to those of the root tsconfig.json. */
export type ExtraOptions = { readonly [name: string]: unknown };

/** Returns the strict options of the root tsconfig.json, with noEmit. */
export function strictOptions(extra: ExtraOptions = {}): ts.CompilerOptions {
  const file = join(repositoryRoot, "tsconfig.json");
  const { config } = compiler.readConfigFile(file, compiler.sys.readFile) as { config: { compilerOptions: object } };
  const kept = Object.entries(config.compilerOptions).filter(([name]) => !OUTPUT_OPTIONS.has(name));
  const { options } = compiler.convertCompilerOptionsFromJson(
    { ...Object.fromEntries(kept), noEmit: true, ...extra },
    repositoryRoot,
  );
  return options;
}

const OUTPUT_OPTIONS = new Set(["composite", "rootDir", "outDir", "tsBuildInfoFile", "sourceMap"]);

/** Type-checks files as one program; returns the errors of each file as `line: TScode message`. */
export function checkFiles(
  files: readonly string[],
  options = strictOptions(),
): ReadonlyMap<string, readonly string[]> {
  const program = compiler.createProgram([...files], options, createHost(options));
  const problems = new Map<string, string[]>();
  for (const { file, start = 0, code, messageText } of compiler.getPreEmitDiagnostics(program)) {
    const name = file?.fileName ?? "";
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1;
    const text = compiler.flattenDiagnosticMessageText(messageText, "\n").replaceAll(`${repositoryRoot}/`, "");
    problems.set(name, [...(problems.get(name) ?? []), `${line}: TS${code} ${text}`]);
  }
  return problems;
}

function createHost(options: ts.CompilerOptions): ts.CompilerHost {
  const host = compiler.createCompilerHost(options);
  // As in tsc: no other JSDoc comments affect the errors, and most of the text of a library is comments.
  host.jsDocParsingMode = compiler.JSDocParsingMode.ParseForTypeErrors;
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (path, parsing, ...rest) => {
    if (!path.startsWith(repositoryRoot) || !path.endsWith(".d.ts")) return read(path, parsing, ...rest);
    const { impliedNodeFormat } = typeof parsing === "object" ? parsing : {};
    const key = [path, impliedNodeFormat, options.target, options.module, options.moduleDetection].join();
    if (!libraryFiles.has(key)) libraryFiles.set(key, read(path, parsing, ...rest));
    return libraryFiles.get(key);
  };
  return host;
}

/**
 * Parsed declarations of libraries and of our packages, by path and by the options that affect them. Programs share them: they are most of the text of
 * each.
 */
const libraryFiles = new Map<string, ts.SourceFile | undefined>();

interface PrintOptions {
  /** Whether to print as to a terminal: with colors, and with the lines that have errors. */
  readonly pretty?: boolean;
}

/** A compiler that must accept generated code. */
export interface Compiler {
  readonly name: string;
  /** The path of its command. */
  readonly command: string;
  /** Compiles the project in a folder; returns what its command prints there: nothing without errors. */
  readonly compile: (folder: string, options?: PrintOptions) => string;
}

const commandOf = (name: string) => join(repositoryRoot, "node_modules", name, "bin/tsc");

/** The compilers that must accept generated code. */
export const compilers: readonly Compiler[] = [
  { name: "typescript 5.9", command: commandOf("typescript"), compile: compileHere },
  { name: "typescript 7", command: commandOf("typescript-7"), compile: compileNatively },
].filter(({ command }) => existsSync(command));

/** The compiler that takes the least time, for tests that need only one. */
export const fastCompiler: Compiler = compilers[compilers.length - 1]!;

/** The compilers for large outputs: only the fast one, unless the run is thorough. */
export const chosenCompilers: readonly Compiler[] = isThorough ? compilers : [fastCompiler];

/** Compiles in this process, where programs share the parsed libraries and the optimized code of the compiler. */
function compileHere(folder: string, { pretty = false }: PrintOptions = {}): string {
  const file = join(folder, "tsconfig.json");
  const { config, error } = compiler.readConfigFile(file, compiler.sys.readFile);
  const parsed = compiler.parseJsonConfigFileContent(config, compiler.sys, folder, {}, file);
  const { fileNames, options } = parsed;
  const program = compiler.createProgram({
    ...{ rootNames: fileNames, options, host: createHost(options) },
    configFileParsingDiagnostics: [...(error === undefined ? [] : [error]), ...parsed.errors],
  });
  const problems = compiler.getPreEmitDiagnostics(program);
  if (options.noEmit !== true) program.emit();
  const print = pretty ? compiler.formatDiagnosticsWithColorAndContext : compiler.formatDiagnostics;
  return print(problems, {
    getCurrentDirectory: () => folder,
    getCanonicalFileName: (path) => path,
    getNewLine: () => "\n",
  });
}

function compileNatively(folder: string, { pretty = false }: PrintOptions = {}): string {
  const args = [commandOf("typescript-7"), "--pretty", String(pretty)];
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  const printed = stdout + stderr;
  // A killed compiler prints nothing.
  return status !== 0 && printed === "" ? `ended with ${signal ?? `exit code ${status}`}` : printed;
}

/** Writes files to a folder as a project that uses the packages of the repository. */
export async function writeProject(
  folder: string,
  files: readonly { readonly path: string; readonly content: string }[],
  extra: ExtraOptions = {},
): Promise<void> {
  for (const { path, content } of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  await linkPackages(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = {
    composite: false,
    rootDir: ".",
    outDir: "dist",
    tsBuildInfoFile: null,
    noEmit: true,
    ...extra,
  };
  const base = relative(folder, join(repositoryRoot, "tsconfig.json"));
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: base, compilerOptions, include: ["**/*.ts"] }),
  );
}

/** Returns the errors in the files of a project, with paths that are relative to it. */
export type ErrorsOf = (project: string) => readonly string[];

/** Compiles projects, each in its own folder, as one program; returns their errors for each compiler. An error outside of all projects is thrown. */
export async function compileTogether(
  projects: { readonly [name: string]: readonly { readonly path: string; readonly content: string }[] },
  chosen: readonly Compiler[],
): Promise<ErrorsOf[]> {
  await using folder = await createTemporaryFolder();
  const files = Object.entries(projects).flatMap(([name, own]) =>
    own.map(({ path, content }) => ({ path: `${name}/${path}`, content })),
  );
  await writeProject(folder.path, files);
  return chosen.map(({ compile }) => {
    const errors = new Map(Object.keys(projects).map((name): [string, string[]] => [name, []]));
    for (const error of compile(folder.path).split(/^(?=\S)/m)) {
      const [, name = "", rest = ""] = /^([^/]*)\/(.*?\(\d+,\d+\): error [^]*)$/.exec(error) ?? [];
      const own = errors.get(name);
      if (own !== undefined) own.push(rest);
      else if (error !== "") throw new Error(error);
    }
    return (project) => errors.get(project) ?? [];
  });
}
