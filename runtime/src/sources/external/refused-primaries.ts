import type { ObjectKey } from "../../base/kubernetes-object.js";

/**
 * The primaries whose reconcile failed because nothing could be fetched.
 *
 * They are told as soon as something can be, whether or not it is new: their retries may have ended, and no event would come of it.
 */
export class RefusedPrimaries {
  readonly #keys = new Set<ObjectKey>();

  /** Fetches what a reconcile waits for; the primary is refused if that throws. */
  async attempt(primary: ObjectKey, fetch: () => Promise<void>): Promise<void> {
    this.#keys.delete(primary);
    try {
      await fetch();
    } catch (error) {
      this.#keys.add(primary);
      throw error;
    }
  }

  /** Forgets a primary; tells whether it was refused. */
  release(primary: ObjectKey): boolean {
    return this.#keys.delete(primary);
  }

  /** Forgets all of them, and returns them. */
  releaseAll(): readonly ObjectKey[] {
    const all = [...this.#keys];
    this.#keys.clear();
    return all;
  }
}
