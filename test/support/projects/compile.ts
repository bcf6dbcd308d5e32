import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { repositoryRoot } from "../repository.js";
import { isThorough } from "../runs.js";
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
  const host = compiler.createCompilerHost(options);
  // As in tsc: no other JSDoc comments affect the errors, and most of the text of a library is comments.
  host.jsDocParsingMode = compiler.JSDocParsingMode.ParseForTypeErrors;
  const program = compiler.createProgram([...files], options, host);
  const problems = new Map<string, string[]>();
  for (const { file, start = 0, code, messageText } of compiler.getPreEmitDiagnostics(program)) {
    const name = file?.fileName ?? "";
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1;
    const text = compiler.flattenDiagnosticMessageText(messageText, "\n").replaceAll(`${repositoryRoot}/`, "");
    problems.set(name, [...(problems.get(name) ?? []), `${line}: TS${code} ${text}`]);
  }
  return problems;
}

/** The compilers that must accept generated code, with the paths of their commands. */
export const compilers = [
  { name: "typescript 5.9", command: join(repositoryRoot, "node_modules/typescript/bin/tsc") },
  { name: "typescript 7", command: join(repositoryRoot, "node_modules/typescript-7/bin/tsc") },
].filter(({ command }) => existsSync(command));

/** The compilers for large outputs: only the fast one, unless the run is thorough. */
export const chosenCompilers = isThorough ? compilers : compilers.slice(-1);

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

/** Type-checks a project with a compiler; returns its output, which is empty without errors. */
export function compileProject(folder: string, command: string): string {
  const { stdout, stderr } = spawnSync(process.execPath, [command, "-p", folder, "--pretty", "false"], {
    encoding: "utf8",
  });
  return stdout + stderr;
}
