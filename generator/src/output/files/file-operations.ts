import { chmodSync, linkSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { readdir, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isRunning } from "../../system-error.js";
import type { FileOwner } from "./output-file.js";

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
export interface WriteFileOptions {
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
export async function deleteTemporaryFiles(folders: Iterable<string>, operations: FileOperations): Promise<void> {
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
