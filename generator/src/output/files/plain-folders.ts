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
  readonly #known = new Map<string, boolean>([[".", true]]);

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
    const stats = INSIDE.test(path) && this.#isPlain(dirname(path)) ? this.#stateOf(path) : undefined;
    return stats?.isFile() === true ? stats : undefined;
  }

  #isPlain(folder: string): boolean {
    let isPlain = this.#known.get(folder);
    if (isPlain === undefined) {
      isPlain = this.#isPlain(dirname(folder)) && this.#stateOf(folder)?.isDirectory() === true;
      this.#known.set(folder, isPlain);
    }
    return isPlain;
  }

  #stateOf(path: string): Stats | undefined {
    return lstatSync(join(this.#root, path), { throwIfNoEntry: false });
  }
}

/** A path of names alone, which cannot lead out of the project. */
const INSIDE = /^(?!\.{1,2}(?:\/|$))[^/\\\0]+(?:\/(?!\.{1,2}(?:\/|$))[^/\\\0]+)*$/;
