/** What parts of runs came to, by what they were made from. */
export interface PartMemory {
  /**
   * Returns what `make` returns, or returned earlier for a part of the same kind and key.
   *
   * The key has to hold everything that the part is made from, and the part has to be JSON, and not undefined.
   */
  recall<Part>(kind: string, key: string, make: () => Part): Part;
  /** Does the same for a part that takes a while to make. */
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

  async recallLater<Part>(kind: string, key: string, make: () => Promise<Part>): Promise<Part> {
    const name = `${kind} ${key}`;
    const part = this.#used.has(name) || this.#earlier.has(name) ? undefined : await make();
    return this.recall(kind, key, () => part as Part);
  }
}
