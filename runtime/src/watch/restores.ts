// That the store of a server was restored is seen by one list-watch first, and concerns all of them: until each has read its kind again,
// an object of one kind would be written from the state of another that is no more.

/** What a list-watch does when another one sees that the server was restored. */
export type RestoreListener = () => void;

/** The list-watches of one server, as far as it was restored from a backup. */
export class Restores {
  readonly #listeners = new Set<RestoreListener>();
  /** Those that have to read their kind again. */
  readonly #outdated = new Set<RestoreListener>();

  /** Whether what is known of some kind may be newer than the state of the server. */
  get isUnderWay(): boolean {
    return this.#outdated.size > 0;
  }

  /** Adds a list-watch; returns how to end that. */
  add(listener: RestoreListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      this.#outdated.delete(listener);
    };
  }

  /** Says that a list-watch sees that the server was restored, unless that is known. */
  tell(by: RestoreListener): void {
    if (this.#outdated.has(by)) return;
    for (const listener of this.#listeners) this.#outdated.add(listener);
    for (const listener of this.#listeners) if (listener !== by) listener();
  }

  /** Says that a list-watch has read its kind again, or cannot: nobody else waits for it. */
  settle(listener: RestoreListener): void {
    this.#outdated.delete(listener);
  }
}
