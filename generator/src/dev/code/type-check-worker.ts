/** Worker thread that checks types for `gen-operator dev`. It reuses the program, so that a check only processes changed files. */
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type ts from "typescript";
import { slashed } from "../../diagnostic.js";
import type { CodeProblem } from "./type-check.js";

const { project, typescript } = workerData as { project: string; typescript: string };
const compiler = createRequire(import.meta.url)(typescript) as typeof ts;

/** A source file with the version by which the builder program detects changes. */
type VersionedFile = ts.SourceFile & { version?: string };

const files = new Map<string, VersionedFile>();
let builder: ts.SemanticDiagnosticsBuilderProgram | undefined;

function check(): CodeProblem[] {
  const configErrors: ts.Diagnostic[] = [];
  const config = compiler.getParsedCommandLineOfConfigFile(
    join(project, "tsconfig.json"),
    { noEmit: true },
    { ...compiler.sys, onUnRecoverableConfigFileDiagnostic: (problem) => configErrors.push(problem) },
  );
  if (config === undefined || config.errors.length > 0) return problemsOf([...configErrors, ...(config?.errors ?? [])]);
  const host = hostOf(config.options);
  const { fileNames, options } = config;
  builder = compiler.createSemanticDiagnosticsBuilderProgram(fileNames, options, host, builder);
  const broken = [...builder.getOptionsDiagnostics(), ...builder.getSyntacticDiagnostics()];
  return problemsOf(
    broken.length > 0 ? broken : [...builder.getGlobalDiagnostics(), ...builder.getSemanticDiagnostics()],
  );
}

function hostOf(options: ts.CompilerOptions): ts.CompilerHost {
  const host = compiler.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, ...rest) => {
    const version = versionOf(name);
    const known = files.get(name);
    if (version !== undefined && known?.version === version) return known;
    const file: VersionedFile | undefined = getSourceFile(name, ...rest);
    if (file === undefined || version === undefined) return file;
    file.version = version;
    files.set(name, file);
    return file;
  };
  return host;
}

function versionOf(name: string): string | undefined {
  const stats = statSync(name, { throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.mtimeMs} ${stats.size}`;
}

function problemsOf(diagnostics: readonly ts.Diagnostic[]): CodeProblem[] {
  return diagnostics
    .filter(({ category }) => category === compiler.DiagnosticCategory.Error)
    .map(({ file, start = 0, code, messageText }) => {
      const message = `TS${code}: ${compiler.flattenDiagnosticMessageText(messageText, "\n")}`;
      if (file === undefined) return { message };
      const { line, character } = file.getLineAndCharacterOfPosition(start);
      const path = slashed(relative(project, file.fileName));
      return { file: path, line: line + 1, column: character + 1, message };
    });
}

parentPort?.on("message", () => parentPort?.postMessage(check()));
