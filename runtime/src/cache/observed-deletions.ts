import { isNewerVersion, type ObjectKey } from "../base/kubernetes-object.js";

// Events that change places are close to each other.
const LIMIT = 1000;

/** The latest deletions that a watch brought, so that an older state that comes after one of them is known as such. */
export class ObservedDeletions {
  readonly #versions = new Map<ObjectKey, string>();

  add(key: ObjectKey, version: string): void {
    this.#versions.delete(key);
    this.#versions.set(key, version);
    if (this.#versions.size <= LIMIT) return;
    for (const oldest of this.#versions.keys()) return void this.#versions.delete(oldest);
  }

  /** Tells whether an object was deleted at this version or later. */
  covers(key: ObjectKey, version: string): boolean {
    const deleted = this.#versions.get(key);
    return deleted !== undefined && !isNewerVersion(version, deleted);
  }

  /** Forgets all: the server was restored, and its versions begin anew. */
  clear(): void {
    this.#versions.clear();
  }
}
