import { lstatSync, readFileSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { digestOf } from "../../parts/digest.js";

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
