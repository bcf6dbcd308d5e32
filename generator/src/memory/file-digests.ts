import { readFileSync, type Stats } from "node:fs";
import { join } from "node:path";
import { digestOf } from "../parts/digest.js";

/** What files held when they were read, by path: the state of the file that tells a later write, and the digest of its content. */
export type KnownFiles = { readonly [path: string]: readonly [stamp: string, digest: string] };

/**
 * Tells what the files of a project hold, and reads only those that may have changed since an earlier run read them.
 *
 * A file is taken for unchanged only if its inode, its size and both its times are those of then. No program can set the time of change, and
 * replacing a file gives another inode. A file that was written shortly before it was read is not remembered: a second write within the same
 * tick of the file system would change neither its times nor, maybe, its size.
 */
export class FileDigests {
  readonly #root: string;
  readonly #now: () => number;
  readonly #known: Map<string, readonly [stamp: string, digest: string]>;
  #hasLearnt = false;

  constructor(root: string, known: KnownFiles = {}, now: () => number = Date.now) {
    this.#root = root;
    this.#known = new Map(Object.entries(known));
    this.#now = now;
  }

  /** Returns the digest of a file that was found in this state. */
  digestOf(path: string, stats: Stats): string {
    const stamp = stampOf(stats);
    const [knownStamp, knownDigest] = this.#known.get(path) ?? [];
    if (knownStamp === stamp && knownDigest !== undefined) return knownDigest;
    const digest = digestOf(readFileSync(join(this.#root, path)));
    if (isSettled(stats, this.#now())) {
      this.#known.set(path, [stamp, digest]);
      this.#hasLearnt = true;
    }
    return digest;
  }

  /** Whether a later run has to read fewer files than this one had to. */
  get hasLearnt(): boolean {
    return this.#hasLearnt;
  }

  /** Returns what is known of some files. */
  knownOf(paths: Iterable<string>): KnownFiles {
    const known = [...paths].flatMap((path) => {
      const file = this.#known.get(path);
      return file === undefined ? [] : [[path, file] as const];
    });
    return Object.fromEntries(known);
  }
}

/** Returns a text that changes whenever a file is written or replaced. */
export function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(" ");
}

/** Tells whether a write from now on shows in the times of a file. FAT counts in two seconds. */
function isSettled({ mtimeMs, ctimeMs }: Stats, now: number): boolean {
  return Math.max(mtimeMs, ctimeMs) < now - 2_500;
}
