import type { ObjectKey } from "../base/kubernetes-object.js";
import { type BoundedEntries, type CacheBound, isEvictedCopy } from "./bounded-entries.js";
import { versionOf, type DecodedResource } from "../decode/decode-resource.js";

/** For whom objects are made readable. */
export interface LoadOptions {
  /** Who needs them to stay readable until it releases them; unless given, they may have to make room at once. */
  readonly holder?: string;
  readonly signal?: AbortSignal;
}

/** The cache for which objects are read. */
export interface LoadingCache {
  /** What is known of an object, be it what is left of it. */
  find(key: ObjectKey): DecodedResource | undefined;
  /** Takes a state that the watch has not brought. */
  put(entry: DecodedResource): void;
  /** Takes the whole of an object of which a copy is left. */
  complete(key: ObjectKey, entry: DecodedResource): void;
}

// How many objects are read at the same time for one reconcile.
const FETCHED_AT_ONCE = 10;

/** Reads again what had to make room in a bounded cache. */
export class BoundedLoader {
  readonly #entries: BoundedEntries;
  readonly #bound: CacheBound;
  readonly #cache: LoadingCache;

  constructor(entries: BoundedEntries, bound: CacheBound, cache: LoadingCache) {
    this.#entries = entries;
    this.#bound = bound;
    this.#cache = cache;
  }

  /** Reads those of these objects that had to make room. What the watch brings meanwhile is newer, and stays. */
  async load(keys: Iterable<ObjectKey>, { holder, signal }: LoadOptions): Promise<void> {
    const wanted = new Set(keys);
    if (holder !== undefined) this.#entries.hold(wanted, holder);
    const missing = [...wanted].filter((key) => this.#copyOf(key) !== undefined);
    for (let start = 0; start < missing.length; start += FETCHED_AT_ONCE)
      await Promise.all(missing.slice(start, start + FETCHED_AT_ONCE).map((key) => this.#fetch(key, signal)));
  }

  #copyOf(key: ObjectKey): DecodedResource | undefined {
    const entry = this.#cache.find(key);
    return entry !== undefined && isEvictedCopy(entry.object) ? entry : undefined;
  }

  async #fetch(key: ObjectKey, signal: AbortSignal | undefined): Promise<void> {
    const entry = await this.#bound.fetch(key, signal);
    const copy = this.#copyOf(key);
    // It is gone, or the watch has brought it.
    if (entry === undefined || copy === undefined) return;
    // A newer one is read as an answer is: its change is still to be told.
    if (versionOf(entry) !== versionOf(copy)) return this.#cache.put(entry);
    this.#cache.complete(key, entry);
  }
}
