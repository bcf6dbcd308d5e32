import { RunParts, type Parts } from "../parts/part-memory.js";
import { readMemoryFile, writeMemoryFile, type MemoryFileOptions } from "./memory-file.js";

const FILE = "parts.json";

/** How parts are stored. */
export interface StoreOptions extends MemoryFileOptions {
  /** Whether the run has come to its end; one that stopped at an error says nothing of what it did not come to. */
  readonly isWhole: boolean;
}

/** What parts came to in the last run of a project. */
export class StoredParts {
  /** Recalls them for this run. */
  readonly parts: RunParts;
  readonly #root: string;
  readonly #earlier: Parts;

  private constructor(root: string, earlier: Parts) {
    this.#root = root;
    this.#earlier = earlier;
    this.parts = new RunParts(earlier);
  }

  static async open(root: string): Promise<StoredParts> {
    const stored = (await readMemoryFile(root, FILE)) as { readonly [key: string]: unknown } | undefined;
    return new StoredParts(root, new Map(Object.entries(stored ?? {})));
  }

  /** Stores what this run has used; what nothing needs any more goes. */
  async store({ isWhole, ...options }: StoreOptions): Promise<void> {
    const { used } = this.parts;
    const parts = isWhole ? used : new Map([...this.#earlier, ...used]);
    const isSame = parts.size === this.#earlier.size && [...parts.keys()].every((name) => this.#earlier.has(name));
    if (!isSame) await writeMemoryFile(this.#root, [FILE, Object.fromEntries(parts)], options);
  }
}
