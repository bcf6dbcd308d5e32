import { untilAborted } from "../../base/promises.js";
import type { ObjectKey } from "../../base/kubernetes-object.js";

interface PrimaryLoad {
  readonly signal: AbortSignal;
  /** Fetches what is not known; called once what may be wrong has been fetched again. */
  fetch(): Promise<unknown>;
  /** Fetches, with a fetch that begins after this call. */
  refetch(): Promise<unknown>;
}

/**
 * What the reconciles of primaries wait for. A primary whose load failed is refused: its source reconciles it after the next fetch that
 * succeeds, whether or not that brings news, as its retries may have ended.
 */
export class PrimaryLoads {
  /** Those of which what is known may be wrong, each with a mark of when that was noted. */
  readonly #stale = new Map<ObjectKey, symbol>();
  readonly #refused = new Set<ObjectKey>();

  /** Notes that what is known of a primary may be wrong, so that it is fetched again before it is read. */
  invalidate(primary: ObjectKey): void {
    this.#stale.set(primary, Symbol());
  }

  /** Fetches what a reconcile needs; throws if that fails, or the reconcile is given up. */
  async load(primary: ObjectKey, { signal, fetch, refetch }: PrimaryLoad): Promise<void> {
    this.#refused.delete(primary);
    const run = async () => {
      const noted = this.#stale.get(primary);
      if (noted !== undefined) await refetch();
      // What was noted meanwhile may have happened after that fetch began.
      if (this.#stale.get(primary) === noted) this.#stale.delete(primary);
      await fetch();
    };
    try {
      await untilAborted(run(), signal);
    } catch (error) {
      if (!signal.aborted) this.#refused.add(primary);
      throw error;
    }
  }

  /** Tells whether a primary is refused, and forgets that. */
  release(primary: ObjectKey): boolean {
    return this.#refused.delete(primary);
  }

  /** Returns the primaries that are refused, and forgets that. */
  releaseAll(): readonly ObjectKey[] {
    return [...this.#refused].filter((primary) => this.release(primary));
  }

  forget(primary?: ObjectKey): void {
    for (const keys of [this.#stale, this.#refused]) {
      if (primary === undefined) keys.clear();
      else keys.delete(primary);
    }
  }
}
