// The calls are synchronous: handing one to another thread takes several times as long as most of them, and there are some for each file.
import { type Stats, existsSync, lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { digestOf } from "../stage.js";

/**
 * Reads the file at a path of a project; undefined if nothing is there. Throws, with the path in the message, if what is there is no file
 * of the project: a folder, a named pipe, or a symbolic link that leads outside or nowhere.
 */
export async function readPresentFile(root: string, path: string): Promise<string | undefined> {
  const refuse = (why: string) => new Error(`refused to write ${path}: ${why}`);
  const contained = await containedPath(root, path);
  if (contained === undefined) throw refuse("it is outside the project");
  const problem = problemOf(root, path);
  if (problem !== undefined) throw refuse(problem);
  return readIfPresent(contained);
}

/** Reads a file of a project that is nothing but a file; undefined if it is something else, or outside. */
export async function readPlainFile(root: string, path: string): Promise<string | undefined> {
  const contained = await containedPath(root, path);
  if (contained === undefined || problemOf(root, path) !== undefined) return undefined;
  return readIfPresent(contained);
}

/** Returns the absolute path of a file of the project; undefined if it is outside, also by way of a symbolic link. */
export async function containedPath(root: string, path: string): Promise<string | undefined> {
  if (path === "" || isAbsolute(path) || path.includes("\0") || path.includes("\\")) return undefined;
  if (path.split("/").some((part) => part === ".." || part === "." || part === "")) return undefined;
  const target = join(root, path);
  for (let existing = target; ; existing = dirname(existing)) {
    const real = attempt(() => (statOf(existing) === undefined ? undefined : realpathSync.native(existing)));
    if (real !== undefined) return isInside(root, real) ? target : undefined;
    if (existing === root) return undefined;
  }
}

function isInside(root: string, path: string): boolean {
  const from = relative(root, path);
  return from === "" || (from !== ".." && !from.startsWith(`..${sep}`) && !isAbsolute(from));
}

/** Tells why nothing can be written to a path, as far as its type and those of the folders around it show. */
function problemOf(root: string, path: string): string | undefined {
  const parts = path.split("/");
  for (let length = 1; length <= parts.length; length += 1) {
    const part = parts.slice(0, length).join("/");
    const at = join(root, part);
    const found = attempt(() => statOf(at));
    if (found === undefined) return undefined;
    const target = found.isSymbolicLink() ? attempt(() => statSync(at)) : found;
    if (target === undefined) return `${nameOf(part, path)} is a symbolic link that leads nowhere`;
    if (length < parts.length && !target.isDirectory()) return `${part} is not a folder`;
    if (length === parts.length && target.isDirectory()) return "a folder has this name";
    if (length === parts.length && !target.isFile()) return "it is not a regular file";
  }
  return undefined;
}

function nameOf(part: string, path: string): string {
  return part === path ? "it" : part;
}

function statOf(path: string) {
  return lstatSync(path, { throwIfNoEntry: false });
}

function attempt<Found>(find: () => Found): Found | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

function readIfPresent(path: string): string | undefined {
  try {
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Reads files that are nothing but files, in folders that are nothing but folders; what a folder is, is looked up once.
 *
 * Anything else, such as a link, is taken for missing: whoever needs to know more has to look closer.
 */
export class PlainFolders {
  readonly #root: string;
  readonly #known = new Map<string, FolderState>([[".", "plain"]]);

  constructor(root: string) {
    this.#root = root;
  }

  /** Returns the text of a file; undefined if there is none. */
  read(path: string): string | undefined {
    return this.hasFile(path) ? readFileSync(join(this.#root, path), "utf8") : undefined;
  }

  /** Returns the digest of a file; undefined if there is none. */
  digestOf(path: string): string | undefined {
    return this.hasFile(path) ? digestOf(readFileSync(join(this.#root, path))) : undefined;
  }

  hasFile(path: string): boolean {
    return this.statsOf(path) !== undefined;
  }

  /** Returns the state of a file; undefined if there is none. */
  statsOf(path: string): Stats | undefined {
    const stats = INSIDE.test(path) && this.#folderState(dirname(path)) === "plain" ? this.#stateOf(path) : undefined;
    return stats?.isFile() === true ? stats : undefined;
  }

  /** Tells whether a path is inside, and there is nothing at all. */
  isFree(path: string): boolean {
    if (!INSIDE.test(path)) return false;
    const around = this.#folderState(dirname(path));
    return around === "absent" || (around === "plain" && this.#stateOf(path) === undefined);
  }

  #folderState(folder: string): FolderState {
    const known = this.#known.get(folder);
    if (known !== undefined) return known;
    let state = this.#folderState(dirname(folder));
    if (state === "plain") {
      const stats = this.#stateOf(folder);
      if (stats === undefined) state = "absent";
      else if (!stats.isDirectory()) state = "other";
    }
    this.#known.set(folder, state);
    return state;
  }

  #stateOf(path: string): Stats | undefined {
    return lstatSync(join(this.#root, path), { throwIfNoEntry: false });
  }
}

/** What is found at the path of a folder. */
type FolderState = "plain" | "absent" | "other";

/** A path of names alone, which cannot lead out of the project. */
const INSIDE = /^(?!\.{1,2}(?:\/|$))[^/\\\0]+(?:\/(?!\.{1,2}(?:\/|$))[^/\\\0]+)*$/;
