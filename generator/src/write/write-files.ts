import { type Stats, chmodSync, linkSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { readdir, realpath, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { type FileOwner, type OutputFile, isImported } from "../emit/output-file.js";
import type { RememberedController, RememberedDependent } from "../model/project-memory.js";
import { digestOf } from "../stage.js";
import { isRunning, isSystemError, reasonOf } from "../system-error.js";
import {
  MANIFEST_PATH,
  type Manifest,
  isGenerated,
  manifestOf,
  readManifest,
  renderManifest,
  unfinishedManifest,
} from "./manifest.js";
import { PlainFolders, containedPath, readPlainFile, readPresentFile } from "../read/project-files.js";

/** What became of the files, by path. */
export interface WriteReport {
  readonly created: readonly string[];
  readonly updated: readonly string[];
  /** Generated before, but no longer. */
  readonly deleted: readonly string[];
  readonly unchanged: readonly string[];
  /** The user's files, which are never touched. */
  readonly kept: readonly string[];
  /** Stubs that generated code imported before, and no longer; they stay as well. */
  readonly unused: readonly string[];
  /** With `check`: generated files that are missing, different or left over. */
  readonly stale: readonly string[];
}

/** How files are written. */
export interface WriteOptions {
  /** Only reports what is stale. */
  readonly check: boolean;
  /** Only reports what a run would change. */
  readonly dryRun?: boolean;
  /** The file that lists the generated files. Default: in `src/generated`. */
  readonly manifestPath?: string;
  /** The dependents that the manifest has to remember. Default: those that it remembers */
  readonly dependents?: readonly RememberedDependent[];
  /** The controllers that the manifest has to remember. Default: those that it remembers */
  readonly controllers?: readonly RememberedController[];
  /** What changes in files of the user's, each of which has to be as it was when the change was found. Default: nothing */
  readonly userChanges?: readonly FileChange[];
  /** Tells what is in a file that was found in a state. Default: reads it */
  readonly digests?: FileDigestSource;
  /** Default: those on disk. */
  readonly operations?: FileOperations;
}

/** Tells what files of a project hold, if it can, without reading them. */
export interface FileDigestSource {
  /** Returns the digest of a file that was found in this state. */
  digestOf(path: string, stats: Stats): string;
}

type Outcome = keyof WriteReport;

/**
 * Writes the files of a project where they differ from what is on disk; with `check` it only reports.
 *
 * Never writes outside the project or over a file that the user owns. A file is replaced at once or not at all. A file that is no
 * longer generated is deleted if the manifest lists it and it still says that it is generated.
 *
 * After a crash at any moment, the next run leaves what an undisturbed run leaves: before the first change, the manifest lists the files
 * of both runs and says that it is unfinished; after the last, it lists the files of this one.
 */
export async function writeFiles(
  project: string,
  files: readonly OutputFile[],
  options: WriteOptions,
): Promise<WriteReport> {
  const { check, dryRun = false, manifestPath = MANIFEST_PATH, dependents, operations = diskOperations } = options;
  const { userChanges = [], digests, controllers } = options;
  const root = await realpath(project);
  // A list of user's files alone says nothing about generated files.
  const isComplete = files.some(({ owner }) => owner === "generator");
  const manifestText = isComplete ? await readPresentFile(root, manifestPath) : undefined;
  const before = readManifest(manifestText);
  const theirs = new Set(userChanges.map(({ path }) => path));
  const found = await findLeftOver(root, files, before);
  const { leftOver } = found;
  const unused = found.unused.filter((path) => !theirs.has(path));
  // Everything that could refuse comes before the first write.
  const own = files.filter(({ path }) => !theirs.has(path));
  const folders = new PlainFolders(root);
  const planned = await Promise.all(
    own.map(async (file) => ({ file, outcome: await planFile(root, file, [folders, digests]) })),
  );
  const edits = await planChanges(root, userChanges);
  const changed = planned.flatMap(({ file, outcome }) =>
    outcome === "created" || outcome === "updated" ? [file] : [],
  );
  const after = manifestOf(files, {
    dependents: dependents ?? before.dependents,
    controllers: controllers ?? before.controllers,
  });
  const isListed = !isComplete || manifestText === renderManifest(after);
  const change = new Change(root, operations);
  const writes = !check && !dryRun;
  // What a killed process has left of the manifest, or of a file of the user's that was edited.
  if (writes) await change.deleteTemporaryFiles([manifestPath, "workflow.yaml", ...theirs]);
  if (writes && !(isListed && changed.length + edits.length + leftOver.length === 0)) {
    const unfinished = unfinishedManifest(before, after);
    const paths = [...unfinished.generatedFiles, ...unfinished.stubs];
    if (isComplete) await change.write({ ...generatorFile(manifestPath), content: renderManifest(unfinished) });
    if (before.isUnfinished || !isComplete) await change.deleteTemporaryFiles(paths);
    for (const file of changed) await change.write(file);
    // What is deleted is somewhere else by then.
    for (const { path, before: former, after: content } of edits)
      if (content !== undefined)
        await change.write({ path, content, owner: former === undefined ? "user" : "generator" });
    for (const { path, after: content } of edits) if (content === undefined) await change.delete(path);
    for (const path of leftOver) await change.delete(path);
    // An interrupted run may have left folders without the files that it made them for.
    if (before.isUnfinished) for (const path of paths) await change.deleteEmptyFolders(path);
    if (isComplete) await change.write({ ...generatorFile(manifestPath), content: renderManifest(after) });
  }
  const outcomes: [string, Outcome][] = [
    ...leftOver.map((path): [string, Outcome] => [path, check ? "stale" : "deleted"]),
    ...unused.map((path): [string, Outcome] => [path, "unused"]),
    ...planned.flatMap(({ file, outcome }): [string, Outcome][] => {
      if (!check || !changed.includes(file)) return [[file.path, outcome]];
      // A missing stub is not stale: only generated files have to be up to date.
      return file.owner === "user" ? [] : [[file.path, "stale"]];
    }),
    ...edits.map(({ path, outcome }): [string, Outcome] => [path, check ? "stale" : outcome]),
    // The manifest is not the user's business, unless a check fails for it.
    ...(check && !isListed ? [[manifestPath, "stale"] satisfies [string, Outcome]] : []),
  ];
  return reportOf(outcomes);
}

function generatorFile(path: string): Omit<OutputFile, "content"> {
  return { path, owner: "generator" };
}

interface PlannedChange extends FileChange {
  readonly outcome: "created" | "updated" | "deleted";
}

/** Returns the changes of files of the user's that are not made yet. */
async function planChanges(root: string, changes: readonly FileChange[]): Promise<PlannedChange[]> {
  const planned = await Promise.all(
    changes.map(async ({ path, before, after }): Promise<PlannedChange[]> => {
      const present = await readPresentFile(root, path);
      // Whoever found the change has read the text without its mark of the byte order.
      const mark = present?.startsWith("\ufeff") === true ? "\ufeff" : "";
      const current = present?.slice(mark.length);
      if (current === after) return [];
      if (current !== before) throw new Error(`refused to change ${path}: somebody else has changed it; try again`);
      if (after === undefined) return [{ path, outcome: "deleted", ...(before === undefined ? {} : { before }) }];
      if (before === undefined) return [{ path, outcome: "created", after }];
      return [{ path, outcome: "updated", before, after: mark + after }];
    }),
  );
  return planned.flat();
}

async function planFile(
  root: string,
  file: OutputFile,
  [folders, digests]: readonly [folders: PlainFolders, digests: FileDigestSource | undefined],
): Promise<"created" | "updated" | "unchanged" | "kept"> {
  const stats = folders.statsOf(file.path);
  if (stats === undefined && folders.isFree(file.path)) return "created";
  if (file.owner === "user" && stats !== undefined) return "kept";
  if (stats !== undefined && digests?.digestOf(file.path, stats) === (file.digest ?? digestOf(file.content)))
    return "unchanged";
  const current = folders.read(file.path) ?? (await readPresentFile(root, file.path));
  if (current === undefined) return "created";
  if (file.owner === "user") return "kept";
  const isSame = file.digest === undefined ? current === file.content : digestOf(current) === file.digest;
  if (isSame) return "unchanged";
  if (!isGenerated(current))
    throw new Error(`refused to overwrite ${file.path}: it does not say that it is generated; move it away`);
  return "updated";
}

interface LeftOver {
  readonly leftOver: readonly string[];
  readonly unused: readonly string[];
}

/** Finds what a former run has written and this one has not: generated files, and stubs. */
async function findLeftOver(root: string, files: readonly OutputFile[], listed: Manifest): Promise<LeftOver> {
  const current = new Set(files.map(({ path }) => path));
  // The manifest is a file that anybody may have edited.
  const textOf = async (path: string) => (current.has(path) ? undefined : readPlainFile(root, path));
  const leftOver: string[] = [];
  const unused: string[] = [];
  for (const path of listed.generatedFiles) {
    const text = await textOf(path);
    if (text !== undefined && isGenerated(text)) leftOver.push(path);
  }
  for (const path of listed.stubs) if (isImported(path) && (await textOf(path)) !== undefined) unused.push(path);
  return { leftOver, unused };
}

/** Changes the files of a project. An error names the file. */
class Change {
  readonly #root: string;
  readonly #operations: FileOperations;

  constructor(root: string, operations: FileOperations) {
    this.#root = root;
    this.#operations = operations;
  }

  async write({ path, owner, content }: OutputFile): Promise<void> {
    try {
      await writeFileAtOnce(join(this.#root, path), content, { owner, operations: this.#operations });
    } catch (error) {
      throw failure(`cannot write ${path}`, error);
    }
  }

  async delete(path: string): Promise<void> {
    try {
      await this.#operations.delete(join(this.#root, path));
    } catch (error) {
      throw failure(`cannot delete ${path}`, error);
    }
    await this.deleteEmptyFolders(path);
  }

  /** Deletes the folders around a path, up to the first that is not empty. */
  async deleteEmptyFolders(path: string): Promise<void> {
    if ((await containedPath(this.#root, path)) === undefined) return;
    for (let folder = dirname(join(this.#root, path)); folder !== this.#root; folder = dirname(folder)) {
      const code = await this.#operations.deleteFolder(folder).then(
        () => "ENOENT",
        (error: NodeJS.ErrnoException) => {
          // A folder with files in it, and one that cannot be deleted, harm nobody.
          if (["ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "EACCES", "EPERM"].includes(error.code ?? ""))
            return error.code;
          throw failure(`cannot delete ${relative(this.#root, folder)}`, error);
        },
      );
      if (code !== "ENOENT") return;
    }
  }

  /** Deletes what a run that was killed has left beside some files. */
  async deleteTemporaryFiles(files: readonly string[]): Promise<void> {
    const paths = await Promise.all(files.map((path) => containedPath(this.#root, path)));
    const folders = new Set(paths.flatMap((path) => (path === undefined ? [] : [dirname(path)])));
    await deleteTemporaryFiles(folders, this.#operations);
  }
}

function failure(what: string, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = isSystemError(error) ? reasonOf(error) : message;
  return Object.assign(new Error(`${what}: ${reason}`, { cause: error }), code === undefined ? {} : { code });
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

/** What changes files and folders. A test lets each of the calls fail in turn. */
export interface FileOperations {
  /** Creates a folder and those around it. */
  createFolder(path: string): Promise<void>;
  /** Writes a file that does not exist yet. Default mode: that of new files. */
  write(path: string, content: string, mode?: number): Promise<void>;
  /** Moves a file to where another one may be. */
  replace(from: string, to: string): Promise<void>;
  /** Gives a file a second name that does not exist yet. */
  link(from: string, to: string): Promise<void>;
  /** Deletes a file, if it exists. */
  delete(path: string): Promise<void>;
  /** Deletes an empty folder. */
  deleteFolder(path: string): Promise<void>;
}

/** Changes files and folders on disk. What is called for each file is synchronous, which takes a fraction of the time. */
export const diskOperations: FileOperations = {
  createFolder: async (path) => {
    // Most are there, and looking takes a tenth of the time.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) mkdirSync(path, { recursive: true });
  },
  write: async (path, content, mode) => {
    writeFileSync(path, content, { flag: "wx" });
    if (mode !== undefined) chmodSync(path, mode);
  },
  replace: async (from, to) => renameSync(from, to),
  link: async (from, to) => linkSync(from, to),
  delete: (path) => rm(path, { force: true }),
  deleteFolder: rmdir,
};

/** What a file is written with. */
interface WriteFileOptions {
  readonly owner: FileOwner;
  readonly operations: FileOperations;
}

/**
 * Writes a file at once or not at all: a reader, a full disk and a crash never leave a part of it. A file of the user's that exists by
 * now stays as it is.
 */
export async function writeFileAtOnce(
  path: string,
  content: string,
  { owner, operations }: WriteFileOptions,
): Promise<void> {
  await operations.createFolder(dirname(path));
  const temporary = temporaryNameOf(path);
  inUse.add(temporary);
  try {
    // A file that is replaced keeps its mode.
    const mode = owner === "generator" ? modeOf(path) : undefined;
    await operations.write(temporary, content, mode);
    if (owner === "generator") return await operations.replace(temporary, path);
    await linkUnlessPresent(temporary, path, operations);
    await operations.delete(temporary);
  } catch (error) {
    // It is of no use, and the first error tells more.
    await operations.delete(temporary).catch(() => undefined);
    throw error;
  } finally {
    inUse.delete(temporary);
  }
}

function modeOf(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mode;
  } catch {
    return undefined;
  }
}

async function linkUnlessPresent(from: string, to: string, operations: FileOperations): Promise<void> {
  try {
    await operations.link(from, to);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    // Some file systems have no second names: then a file that appears right now is lost.
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS") throw error;
    await operations.replace(from, to);
  }
}

let count = 0;
const inUse = new Set<string>();

function temporaryNameOf(path: string): string {
  count += 1;
  return join(dirname(path), `.${basename(path)}.${process.pid}-${count}.gen-operator`);
}

/** Deletes what processes that were killed have left in some folders. */
async function deleteTemporaryFiles(folders: Iterable<string>, operations: FileOperations): Promise<void> {
  for (const folder of folders) {
    const names = await readdir(folder).catch(() => []);
    for (const name of names) {
      const writer = /^\..+\.(\d+)-\d+\.gen-operator$/.exec(name)?.[1];
      const path = join(folder, name);
      if (writer === undefined || inUse.has(path)) continue;
      if (Number(writer) === process.pid || !isRunning(Number(writer))) await operations.delete(path);
    }
  }
}

/** A file before and after a run; absent where there is none. */
export interface FileChange {
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

/** Reads what would become of the files that a report names as created, updated or deleted. */
export async function readChanges(
  root: string,
  files: readonly Pick<OutputFile, "path" | "content">[],
  report: WriteReport,
): Promise<FileChange[]> {
  const after = new Map(files.map((file) => [file.path, file]));
  const changes = await Promise.all([
    ...report.created.map((path) => ({ path, after: after.get(path)?.content ?? "" })),
    ...report.updated.map(async (path) => ({
      path,
      before: (await readPresentFile(root, path)) ?? "",
      after: after.get(path)?.content ?? "",
    })),
    ...report.deleted.map(async (path) => ({ path, before: (await readPlainFile(root, path)) ?? "" })),
  ]);
  return changes.sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Formats changes as a unified diff, which `git apply` and `patch -p1` take. */
export async function formatChanges(changes: readonly FileChange[]): Promise<string> {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import("diff");
  return changes
    .map(({ path, before, after }) => {
      const names = [before === undefined ? "/dev/null" : `a/${path}`, after === undefined ? "/dev/null" : `b/${path}`];
      const [oldName = "", newName = ""] = names;
      return createTwoFilesPatch(oldName, newName, before ?? "", after ?? "", undefined, undefined, {
        context: 3,
        headerOptions: FILE_HEADERS_ONLY,
      });
    })
    .join("");
}
