// One list-watch is the first to see that the store of its server was restored. All of them are outdated: until each has listed its kind again,
// an object of one kind would be written from an undone state of another kind.

/** The list-watches of one server that have to list again because it was restored. */
export class Restores {
  /** Called when another list-watch sees that the server was restored. */
  readonly #listeners = new Set<() => void>();
  readonly #outdated = new Set<() => void>();

  /** Whether the cache of some kind may be newer than the server. */
  get isUnderWay(): boolean {
    return this.#outdated.size > 0;
  }

  /** Adds a list-watch; returns the function that removes it. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      this.#outdated.delete(listener);
    };
  }

  /** Takes that a list-watch saw a restored server, and calls all others, unless this is known already. */
  tell(by: () => void): void {
    if (this.#outdated.has(by)) return;
    for (const listener of this.#listeners) this.#outdated.add(listener);
    for (const listener of this.#listeners) if (listener !== by) listener();
  }

  /** Takes that a list-watch has listed its kind again, or failed to: the others do not wait for it. */
  settle(listener: () => void): void {
    this.#outdated.delete(listener);
  }
}
