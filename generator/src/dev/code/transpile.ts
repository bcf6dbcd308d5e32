import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, readdir, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { slashed } from "../../diagnostic.js";
import type { CodeProblem } from "./type-check.js";

/** The part of esbuild that `dev` uses. */
export interface Esbuild {
  build(options: {
    readonly entryPoints: readonly string[];
    readonly absWorkingDir: string;
    readonly outdir: string;
    readonly outbase: string;
    readonly format: "esm";
    readonly platform: "node";
    readonly target: string;
    readonly sourcemap: boolean;
    readonly logLevel: "silent";
  }): Promise<unknown>;
}

interface EsbuildFailure {
  readonly errors?: readonly {
    readonly text: string;
    readonly location: { readonly file: string; readonly line: number; readonly column: number } | null;
  }[];
}

/** Result of an update of the compiled code. */
export interface Transpiled {
  /** True if the compiled code has changed. */
  readonly isChanged: boolean;
  readonly problems: readonly CodeProblem[];
}

/** Maintains a compiled copy of the code of a project, and compiles only files whose content has changed. */
export class Transpiler {
  readonly #project: string;
  readonly #outFolder: string;
  readonly #esbuild: Esbuild;
  /** Compiled source texts, by path. */
  readonly #compiled = new Map<string, string>();

  constructor({ project, outFolder, esbuild }: { project: string; outFolder: string; esbuild: Esbuild }) {
    this.#project = project;
    this.#outFolder = outFolder;
    this.#esbuild = esbuild;
  }

  /** Updates the compiled copy. After a syntax error, only files without errors may be updated. */
  async update(): Promise<Transpiled> {
    const files = await listCode(this.#project);
    const texts = new Map(
      await Promise.all(files.map(async (file) => [file, await readText(this.#project, file)] as const)),
    );
    // The output may have been deleted in the meantime.
    const isCurrent = (file: string) =>
      this.#compiled.get(file) === texts.get(file) && existsSync(join(this.#outFolder, compiledPathOf(file)));
    const changed = files.filter((file) => !isCurrent(file));
    const left = [...this.#compiled.keys()].filter((file) => !texts.has(file));
    if (changed.length === 0 && left.length === 0) return { isChanged: false, problems: [] };
    const sources = changed.filter(isTypeScript);
    try {
      if (sources.length > 0) await this.#compile(sources);
    } catch (error) {
      return { isChanged: false, problems: problemsOf(error) };
    }
    for (const file of changed.filter((each) => !isTypeScript(each))) {
      const target = join(this.#outFolder, file);
      await mkdir(dirname(target), { recursive: true });
      await copyFile(join(this.#project, file), target);
    }
    for (const file of left) {
      await rm(join(this.#outFolder, compiledPathOf(file)), { force: true });
      this.#compiled.delete(file);
    }
    for (const file of changed) this.#compiled.set(file, texts.get(file) ?? "");
    return { isChanged: true, problems: [] };
  }

  async #compile(entryPoints: readonly string[]): Promise<void> {
    await this.#esbuild.build({
      entryPoints,
      absWorkingDir: this.#project,
      outdir: this.#outFolder,
      outbase: this.#project,
      format: "esm",
      platform: "node",
      target: "node20",
      sourcemap: true,
      logLevel: "silent",
    });
  }
}

/** Lists the code below `src`, and the JSON files that code may import. */
async function listCode(project: string): Promise<string[]> {
  const entries = await readdir(join(project, "src"), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.(?:[mc]?[jt]s|json)$/.test(entry.name) && !/\.d\.[mc]?ts$/.test(entry.name))
    .map((entry) => slashed(relative(project, join(entry.parentPath, entry.name))))
    .sort();
}

// Some editors delete a file briefly while saving it.
async function readText(project: string, file: string): Promise<string> {
  return readFile(join(project, file), "utf8").catch(() => "");
}

function isTypeScript(file: string): boolean {
  return /\.[mc]?ts$/.test(file);
}

function compiledPathOf(file: string): string {
  return file.replace(/\.([mc]?)ts$/, ".$1js");
}

function problemsOf(error: unknown): CodeProblem[] {
  const { errors } = error as EsbuildFailure;
  if (errors === undefined) throw error;
  return errors.map(({ text, location }) => ({
    ...(location === null ? {} : { file: location.file, line: location.line, column: location.column + 1 }),
    message: text,
  }));
}
