import type { ObjectKey } from "../../base/kubernetes-object.js";

/** The primaries of which what is known may be wrong, so that it is fetched again before it is read. */
export class Reloads {
  readonly #stale = new Set<ObjectKey>();
  readonly #running = new Map<ObjectKey, Promise<void>>();

  /** Notes that what is known of a primary may be wrong. */
  invalidate(primary: ObjectKey): void {
    this.#stale.add(primary);
  }

  /** Fetches again what may be wrong, once for all who wait for it; throws if that fails, and then it still may be wrong. */
  async load(primary: ObjectKey, fetch: () => Promise<unknown>): Promise<void> {
    // One that is under way may have begun before the change that failed.
    await this.#running.get(primary)?.catch(() => {});
    if (this.#stale.delete(primary)) this.#running.set(primary, this.#run(primary, fetch));
    await this.#running.get(primary);
  }

  /** Forgets a primary, or all of them. */
  forget(primary?: ObjectKey): void {
    if (primary === undefined) this.#stale.clear();
    else this.#stale.delete(primary);
  }

  async #run(primary: ObjectKey, fetch: () => Promise<unknown>): Promise<void> {
    try {
      await fetch();
    } catch (error) {
      this.#stale.add(primary);
      throw error;
    } finally {
      this.#running.delete(primary);
    }
  }
}
