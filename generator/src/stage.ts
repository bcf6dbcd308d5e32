import { createHash } from "node:crypto";

/** Returns a text that stands for a content: two contents have the same one only if they are the same. */
export function digestOf(...contents: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  // The length keeps what is in two parts from being taken for the same in other parts.
  for (const content of contents) hash.update(`${Buffer.byteLength(content)}:`).update(content);
  return hash.digest("base64url");
}

/** What parts of runs came to, by what they were made from. */
export interface PartMemory {
  /**
   * Returns what `make` returns, or returned earlier for a part of the same kind and key.
   *
   * The key has to hold everything that the part is made from, and the part has to be JSON, and not undefined.
   */
  recall<Part>(kind: string, key: string, make: () => Part): Part;
  /** Tells whether a part need not be made. */
  has(kind: string, key: string): boolean;
  /** Does the same as `recall` for a part that takes a while to make. */
  recallLater<Part>(kind: string, key: string, make: () => Promise<Part>): Promise<Part>;
}

/** Parts by their kinds and keys. */
export type Parts = ReadonlyMap<string, unknown>;

/** Recalls parts of this run, and of an earlier one. */
export class RunParts implements PartMemory {
  readonly #earlier: Parts;
  readonly #used = new Map<string, unknown>();

  constructor(earlier: Parts = new Map()) {
    this.#earlier = earlier;
  }

  /** What was recalled. */
  get used(): Parts {
    return this.#used;
  }

  recall<Part>(kind: string, key: string, make: () => Part): Part {
    const name = `${kind} ${key}`;
    if (!this.#used.has(name)) this.#used.set(name, this.#earlier.has(name) ? this.#earlier.get(name) : make());
    return this.#used.get(name) as Part;
  }

  has(kind: string, key: string): boolean {
    const name = `${kind} ${key}`;
    return this.#used.has(name) || this.#earlier.has(name);
  }

  async recallLater<Part>(kind: string, key: string, make: () => Promise<Part>): Promise<Part> {
    const part = this.has(kind, key) ? undefined : await make();
    return this.recall(kind, key, () => part as Part);
  }
}
