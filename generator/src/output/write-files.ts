import { randomUUID } from "node:crypto";
import { mkdir, readFile, realpath, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { isGenerated, MANIFEST_PATH, readManifest, renderManifest } from "./manifest.js";
import type { OutputFile } from "./output-file.js";

/** What became of the files, by path. */
export interface WriteReport {
  readonly created: readonly string[];
  readonly updated: readonly string[];
  /** Generated before, but no longer. */
  readonly deleted: readonly string[];
  readonly unchanged: readonly string[];
  /** The user's files, which are never touched. */
  readonly kept: readonly string[];
  /** With `check`: generated files that are missing, different or left over. */
  readonly stale: readonly string[];
}

/** How files are written. */
export interface WriteOptions {
  /** Only reports. */
  readonly check: boolean;
  /** Where the generated files are listed; in `src/generated` unless given. */
  readonly manifestPath?: string;
}

type Outcome = keyof WriteReport;

/**
 * Writes the files of a project where they differ from what is on disk; with `check` it only reports.
 *
 * Never writes outside the project or over a file that the user owns. A file is replaced at once or not at all. A file that is no
 * longer generated is deleted if the manifest lists it and it still says that it is generated.
 */
export async function writeFiles(
  project: string,
  files: readonly OutputFile[],
  { check, manifestPath = MANIFEST_PATH }: WriteOptions,
): Promise<WriteReport> {
  const root = await realpath(project);
  const generated = files.filter(({ owner }) => owner === "generator");
  const manifest: OutputFile = { path: manifestPath, owner: "generator", content: renderManifest(generated) };
  const all = generated.length > 0 ? [...files, manifest] : files;
  const leftOver = await findLeftOver(root, all, manifestPath);
  // Everything that could refuse comes before the first write.
  const planned = await Promise.all(
    all.map(async (file) => ({ file, outcome: await planFile(root, file, manifestPath) })),
  );
  const outcomes: [string, Outcome][] = [
    ...leftOver.map((path): [string, Outcome] => [path, check ? "stale" : "deleted"]),
  ];
  for (const { file, outcome } of planned) {
    const isWritten = outcome === "created" || outcome === "updated";
    if (isWritten && !check) await writeFileAtOnce(join(root, file.path), file);
    // A stub that is missing is not stale: only what is generated has to be up to date.
    if (isWritten && check && file.owner === "user") continue;
    if (file !== manifest || check) outcomes.push([file.path, isWritten && check ? "stale" : outcome]);
  }
  if (!check) for (const path of leftOver) await deleteFile(root, path);
  return reportOf(outcomes);
}

async function planFile(
  root: string,
  file: OutputFile,
  manifestPath: string,
): Promise<"created" | "updated" | "unchanged" | "kept"> {
  const path = await containedPath(root, file.path);
  if (path === undefined) throw new Error(`refused to write ${file.path}: it is outside the project`);
  const current = await readIfPresent(path);
  if (current === undefined) return "created";
  if (file.owner === "user") return "kept";
  if (current === file.content) return "unchanged";
  if (file.path !== manifestPath && !isGenerated(current))
    throw new Error(`refused to overwrite ${file.path}: it does not say that it is generated; move it away`);
  return "updated";
}

async function findLeftOver(root: string, files: readonly OutputFile[], manifestPath: string): Promise<string[]> {
  const current = new Set(files.map(({ path }) => path));
  const listed = readManifest(await readIfPresent(join(root, manifestPath)));
  const left: string[] = [];
  for (const path of listed) {
    if (current.has(path)) continue;
    // The manifest is a file that anybody may have edited.
    const contained = await containedPath(root, path);
    const text = contained === undefined ? undefined : await readIfPresent(contained);
    if (text !== undefined && isGenerated(text)) left.push(path);
  }
  return left;
}

/** Returns the absolute path of a file of the project; undefined if it is outside, also by way of a symbolic link. */
export async function containedPath(root: string, path: string): Promise<string | undefined> {
  if (path === "" || isAbsolute(path) || path.includes("\0") || path.includes("\\")) return undefined;
  if (path.split("/").some((part) => part === ".." || part === "." || part === "")) return undefined;
  const target = join(root, path);
  for (let existing = target; ; existing = dirname(existing)) {
    const real = await realpath(existing).catch(() => undefined);
    if (real !== undefined) return isInside(root, real) ? target : undefined;
    if (existing === root) return undefined;
  }
}

function isInside(root: string, path: string): boolean {
  const from = relative(root, path);
  return from === "" || (from !== ".." && !from.startsWith(`..${sep}`) && !isAbsolute(from));
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function writeFileAtOnce(path: string, { content, owner }: OutputFile): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  // The user may have created the file since it was looked for.
  if (owner === "user") return writeFile(path, content, { flag: "wx" });
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    await writeFile(temporary, content, { flag: "wx" });
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

async function deleteFile(root: string, path: string): Promise<void> {
  await rm(join(root, path), { force: true });
  // Folders that are empty now go too; the first one that is not ends it.
  for (let folder = dirname(join(root, path)); folder !== root; folder = dirname(folder)) {
    const isEmpty = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!isEmpty) return;
  }
}

function reportOf(outcomes: readonly (readonly [string, Outcome])[]): WriteReport {
  const of = (wanted: Outcome) => outcomes.flatMap(([path, outcome]) => (outcome === wanted ? [path] : [])).sort();
  return {
    created: of("created"),
    updated: of("updated"),
    deleted: of("deleted"),
    unchanged: of("unchanged"),
    kept: of("kept"),
    stale: of("stale"),
  };
}
