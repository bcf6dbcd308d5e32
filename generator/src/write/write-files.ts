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

/** The files of a run, by path. */
export interface WriteReport {
  readonly created: readonly string[];
  readonly updated: readonly string[];
  /** Files that are no longer generated. */
  readonly deleted: readonly string[];
  readonly unchanged: readonly string[];
  /** Existing user files, which are never modified. */
  readonly kept: readonly string[];
  /** Stubs that generated code no longer imports. They are not deleted. */
  readonly unused: readonly string[];
  /** With `check`: generated files that are missing, different, or no longer generated. */
  readonly stale: readonly string[];
}

/** Options of {@link writeFiles}. */
export interface WriteOptions {
  /** Only report stale files. */
  readonly check: boolean;
  /** Only report the changes. */
  readonly dryRun?: boolean;
  /** Path of the manifest. Default: {@link MANIFEST_PATH} */
  readonly manifestPath?: string;
  /** Dependents to record in the manifest. Default: those that it contains */
  readonly dependents?: readonly RememberedDependent[];
  /** Controllers to record in the manifest. Default: those that it contains */
  readonly controllers?: readonly RememberedController[];
  /** Changes of user files. Each file must still have the content from which the change was computed. Default: none */
  readonly userChanges?: readonly FileChange[];
  /** Source of the digests of existing files. Default: the files are read */
  readonly digests?: FileDigestSource;
  /** File operations. Default: those on disk */
  readonly operations?: FileOperations;
}

/** Computes digests of project files, without reading them if they are known. */
export interface FileDigestSource {
  /** Returns the digest of a file with the given state. */
  digestOf(path: string, stats: Stats): string;
}

type Outcome = keyof WriteReport;

/**
 * Writes the files of a project that differ from those on disk; with `check` or `dryRun`, it only reports them.
 *
 * Never writes outside of the project, and never over an existing user file, except for `userChanges`. Each file is replaced atomically. A file that
 * is no longer generated is deleted if the manifest lists it and it still has the header of generated files.
 *
 * The next run recovers from a crash at any point: before the first change, the manifest is written with the files of both runs and marked as
 * unfinished; after the last one, it is written with the files of this run.
 */
export async function writeFiles(
  project: string,
  files: readonly OutputFile[],
  options: WriteOptions,
): Promise<WriteReport> {
  const { check, dryRun = false, manifestPath = MANIFEST_PATH, dependents, operations = diskOperations } = options;
  const { userChanges = [], digests, controllers } = options;
  const root = await realpath(project);
  // A list that only contains user files says nothing about generated files.
  const isComplete = files.some(({ owner }) => owner === "generator");
  const manifestText = isComplete ? await readPresentFile(root, manifestPath) : undefined;
  const before = readManifest(manifestText);
  const theirs = new Set(userChanges.map(({ path }) => path));
  const found = await findLeftOver(root, files, before);
  const { leftOver } = found;
  const unused = found.unused.filter((path) => !theirs.has(path));
  // Perform all checks that may fail before the first write.
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
  // Delete temporary files that a killed process left for the manifest, the default spec, or edited user files.
  if (writes) await change.deleteTemporaryFiles([manifestPath, "workflow.yaml", ...theirs]);
  if (writes && !(isListed && changed.length + edits.length + leftOver.length === 0)) {
    const unfinished = unfinishedManifest(before, after);
    const paths = [...unfinished.generatedFiles, ...unfinished.stubs];
    if (isComplete) await change.write({ ...generatorFile(manifestPath), content: renderManifest(unfinished) });
    if (before.isUnfinished || !isComplete) await change.deleteTemporaryFiles(paths);
    for (const file of changed) await change.write(file);
    // Write before deleting: the content of a deleted file has moved to another path.
    for (const { path, before: former, after: content } of edits)
      if (content !== undefined)
        await change.write({ path, content, owner: former === undefined ? "user" : "generator" });
    for (const { path, after: content } of edits) if (content === undefined) await change.delete(path);
    for (const path of leftOver) await change.delete(path);
    // An interrupted run may have created folders without their files.
    if (before.isUnfinished) for (const path of paths) await change.deleteEmptyFolders(path);
    if (isComplete) await change.write({ ...generatorFile(manifestPath), content: renderManifest(after) });
  }
  const outcomes: [string, Outcome][] = [
    ...leftOver.map((path): [string, Outcome] => [path, check ? "stale" : "deleted"]),
    ...unused.map((path): [string, Outcome] => [path, "unused"]),
    ...planned.flatMap(({ file, outcome }): [string, Outcome][] => {
      if (!check || !changed.includes(file)) return [[file.path, outcome]];
      // A missing stub is not stale: only generated files must be up to date.
      return file.owner === "user" ? [] : [[file.path, "stale"]];
    }),
    ...edits.map(({ path, outcome }): [string, Outcome] => [path, check ? "stale" : outcome]),
    // The manifest is only reported if it fails a check.
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

/** Returns the changes of user files that are not applied yet. */
async function planChanges(root: string, changes: readonly FileChange[]): Promise<PlannedChange[]> {
  const planned = await Promise.all(
    changes.map(async ({ path, before, after }): Promise<PlannedChange[]> => {
      const present = await readPresentFile(root, path);
      // The texts of a change have no byte order mark.
      const mark = present?.startsWith("\ufeff") === true ? "\ufeff" : "";
      const current = present?.slice(mark.length);
      if (current === after) return [];
      if (current !== before)
        throw new Error(`refused to change ${path}: it was changed in the meantime; run the command again`);
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
    throw new Error(`refused to overwrite ${file.path}: it has no header of generated code; move or delete it`);
  return "updated";
}

interface LeftOver {
  readonly leftOver: readonly string[];
  readonly unused: readonly string[];
}

/** Finds the generated files and stubs of the previous run that this run does not contain. */
async function findLeftOver(root: string, files: readonly OutputFile[], listed: Manifest): Promise<LeftOver> {
  const current = new Set(files.map(({ path }) => path));
  // The manifest may have been edited, so read its paths safely.
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

/** Applies changes to the files of a project. Errors contain the path of the file. */
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

  /** Deletes empty parent folders of a path, up to the first that is not empty. */
  async deleteEmptyFolders(path: string): Promise<void> {
    if ((await containedPath(this.#root, path)) === undefined) return;
    for (let folder = dirname(join(this.#root, path)); folder !== this.#root; folder = dirname(folder)) {
      const code = await this.#operations.deleteFolder(folder).then(
        () => "ENOENT",
        (error: NodeJS.ErrnoException) => {
          // Keep folders that are not empty or cannot be deleted.
          if (["ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "EACCES", "EPERM"].includes(error.code ?? ""))
            return error.code;
          throw failure(`cannot delete ${relative(this.#root, folder)}`, error);
        },
      );
      if (code !== "ENOENT") return;
    }
  }

  /** Deletes temporary files of killed runs in the folders of the given files. */
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

/** File system operations. Tests let each of them fail in turn. */
export interface FileOperations {
  /** Creates a folder and its parents. */
  createFolder(path: string): Promise<void>;
  /** Writes a new file. Default mode: that of new files */
  write(path: string, content: string, mode?: number): Promise<void>;
  /** Moves a file, replacing an existing one. */
  replace(from: string, to: string): Promise<void>;
  /** Creates a hard link. Fails if the target exists. */
  link(from: string, to: string): Promise<void>;
  /** Deletes a file if it exists. */
  delete(path: string): Promise<void>;
  /** Deletes an empty folder. */
  deleteFolder(path: string): Promise<void>;
}

/** Operations on disk. Those that are called for each file are synchronous, which takes a fraction of the time. */
export const diskOperations: FileOperations = {
  createFolder: async (path) => {
    // Most folders exist, and checking takes a tenth of the time.
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

/** Options of {@link writeFileAtOnce}. */
interface WriteFileOptions {
  readonly owner: FileOwner;
  readonly operations: FileOperations;
}

/** Writes a file atomically: readers, a full disk, or a crash never see a partial file. An existing user file is not overwritten. */
export async function writeFileAtOnce(
  path: string,
  content: string,
  { owner, operations }: WriteFileOptions,
): Promise<void> {
  await operations.createFolder(dirname(path));
  const temporary = temporaryNameOf(path);
  inUse.add(temporary);
  try {
    // A replaced file keeps its mode.
    const mode = owner === "generator" ? modeOf(path) : undefined;
    await operations.write(temporary, content, mode);
    if (owner === "generator") return await operations.replace(temporary, path);
    await linkUnlessPresent(temporary, path, operations);
    await operations.delete(temporary);
  } catch (error) {
    // Ignore errors of the deletion; the first error is more informative.
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
    // Some file systems have no hard links; there, a file that is created at this moment is overwritten.
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

/** Deletes temporary files of killed processes in some folders. */
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

/** The content of a file before and after a run; absent if the file does not exist then. */
export interface FileChange {
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

/** Reads the contents before and after a run of the files that a report lists as created, updated, or deleted. */
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

/** Formats changes as a unified diff for `git apply` and `patch -p1`. */
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
