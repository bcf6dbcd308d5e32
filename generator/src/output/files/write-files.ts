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
  /** Files that were stubs before and that nothing needs any more; they stay as well. */
  readonly unused: readonly string[];
  /** With `check`: generated files that are missing, different or left over. */
  readonly stale: readonly string[];
}

/** How files are written. */
export interface WriteOptions {
  /** Only reports. */
  readonly check: boolean;
  /** The file that lists the generated files. Default: in `src/generated`. */
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
  const manifest: OutputFile = { path: manifestPath, owner: "generator", content: renderManifest(files) };
  // A list of user's files alone says nothing about generated files.
  const isComplete = generated.length > 0;
  const all = isComplete ? [...files, manifest] : files;
  const { leftOver, unused } = isComplete ? await findLeftOver(root, all, manifestPath) : NOTHING_LEFT;
  // Everything that could refuse comes before the first write.
  const planned = await Promise.all(
    all.map(async (file) => ({ file, outcome: await planFile(root, file, manifestPath) })),
  );
  const outcomes: [string, Outcome][] = [
    ...leftOver.map((path): [string, Outcome] => [path, check ? "stale" : "deleted"]),
    ...unused.map((path): [string, Outcome] => [path, "unused"]),
  ];
  for (const { file, outcome } of planned) {
    const isWritten = outcome === "created" || outcome === "updated";
    if (isWritten && !check) await writeFileAtOnce(join(root, file.path), file);
    // A missing stub is not stale: only generated files have to be up to date.
    if (isWritten && check && file.owner === "user") continue;
    const isStale = isWritten && check;
    // The manifest is not the user's business, unless a check fails for it.
    if (file !== manifest || isStale) outcomes.push([file.path, isStale ? "stale" : outcome]);
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

interface LeftOver {
  readonly leftOver: readonly string[];
  readonly unused: readonly string[];
}

const NOTHING_LEFT: LeftOver = { leftOver: [], unused: [] };

/** Finds what a former run has written and this one has not: generated files, and stubs. */
async function findLeftOver(root: string, files: readonly OutputFile[], manifestPath: string): Promise<LeftOver> {
  const current = new Set(files.map(({ path }) => path));
  const listed = readManifest(await readIfPresent(join(root, manifestPath)));
  const textOf = async (path: string): Promise<string | undefined> => {
    if (current.has(path)) return undefined;
    // The manifest is a file that anybody may have edited.
    const contained = await containedPath(root, path);
    return contained === undefined ? undefined : readIfPresent(contained);
  };
  const leftOver: string[] = [];
  const unused: string[] = [];
  for (const path of listed.generatedFiles) {
    const text = await textOf(path);
    if (text !== undefined && isGenerated(text)) leftOver.push(path);
  }
  for (const path of listed.stubs) if ((await textOf(path)) !== undefined) unused.push(path);
  return { leftOver, unused };
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
  await replaceFile(path, content);
}

/** Replaces the text of a file at once or not at all. */
export async function replaceFile(path: string, content: string): Promise<void> {
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
  // Empty folders are removed too, up to the first that is not empty.
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
    unused: of("unused"),
    stale: of("stale"),
  };
}
