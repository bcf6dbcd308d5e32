import { readdir } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { type Diagnostic, quote, slashed } from "../diagnostic.js";
import { type ProjectFile, decodeText, isDirectory, readProjectFile } from "./project-files.js";
import { UNREADABLE_FILE } from "./rules.js";

/** The input files of a command, and their diagnostics. */
export interface Inputs {
  readonly files: readonly ProjectFile[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Options of {@link readInputs}. */
export interface InputOptions {
  /** Base folder of relative inputs. */
  readonly folder: string;
  /** Reads standard input to its end. */
  readStdin(): Promise<Uint8Array>;
}

/** Name of standard input in messages. */
export const STDIN = "<stdin>";

const URL_PATTERN = /^[a-z][a-z0-9+.-]*:\/\//i;
const GLOB_PATTERN = /[*?[\]{}]/;

/** Reads files, the YAML and JSON files below folders, glob patterns, and standard input (`-`). Each file is read once. */
export async function readInputs(inputs: readonly string[], { folder, readStdin }: InputOptions): Promise<Inputs> {
  const found = await Promise.all([...new Set(inputs)].map((input) => findFiles(input, folder)));
  const diagnostics = found.flatMap((each) => (Array.isArray(each) ? [] : [each]));
  const names = new Map(
    found.flatMap((each) => (Array.isArray(each) ? each : [])).map((file) => [keyOf(folder, file), file]),
  );
  const read = await Promise.all(
    [...names.values()].map(async (file) => {
      if (file !== STDIN) return readProjectFile(folder, file);
      const text = decodeText(file, await readStdin());
      return typeof text === "string" ? { file, text } : text;
    }),
  );
  return {
    files: read.flatMap((each) => ("rule" in each ? [] : [each])),
    diagnostics: [...diagnostics, ...read.flatMap((each) => ("rule" in each ? [each] : []))],
  };
}

function keyOf(folder: string, file: string): string {
  return file === STDIN ? file : resolve(folder, file);
}

async function findFiles(input: string, folder: string): Promise<string[] | Diagnostic> {
  if (input === "-") return [STDIN];
  if (URL_PATTERN.test(input)) {
    const message = `${quote(input)} is a URL: must be a file, a folder, a pattern or -`;
    return fail(message, `download it: curl -fsSL ${input} | gen-operator … -`);
  }
  if (await isDirectory(resolve(folder, input))) {
    const files = await listFiles(resolve(folder, input));
    if (files.length === 0) return fail(`no .yaml, .yml or .json file found in folder ${quote(input)}`);
    return files.map((file) => slashed(join(input, file)));
  }
  // The name of a file may contain glob characters.
  const read = GLOB_PATTERN.test(input) ? await readProjectFile(folder, input) : undefined;
  if (read === undefined || !("rule" in read)) return [input];
  const { glob } = await import("tinyglobby");
  const files = await glob(input, { cwd: folder, expandDirectories: false });
  return files.length === 0 ? fail(`no file matches ${quote(input)}`) : files.sort();
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory() && /\.(?:yaml|yml|json)$/.test(entry.name))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

function fail(message: string, hint?: string): Diagnostic {
  return { ...UNREADABLE_FILE.violation, message, ...(hint === undefined ? {} : { hint }) };
}
