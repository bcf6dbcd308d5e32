// The objects of a cache that keeps only some of them whole: the most recently used, and those that a running reconcile needs.
import { LRUCache } from "lru-cache";
import type { ObjectKey, KubernetesObject } from "../base/kubernetes-object.js";
import { versionOf, type DecodedResource } from "../decode/decode-resource.js";

/** The bound of a cache. */
export interface CacheBound {
  /** The number of objects that are kept whole. */
  readonly maxObjects: number;
  /** Fetches an evicted object; undefined if it was deleted. */
  fetch(key: ObjectKey, signal: AbortSignal | undefined): Promise<DecodedResource | undefined>;
}

/** Entries by key. A limited number is whole; of an evicted one a copy with the metadata is left. */
export class BoundedEntries {
  /** Whole or evicted. */
  readonly #entries = new Map<ObjectKey, DecodedResource>();
  /** The whole ones that may be evicted, the least recently used first. */
  readonly #recent: LRUCache<ObjectKey, true>;
  /** How often each object is held. */
  readonly #holds = new Map<ObjectKey, number>();
  readonly #heldBy = new Map<string, ReadonlySet<ObjectKey>>();
  readonly #onEvict: (whole: DecodedResource, copy: DecodedResource) => void;

  constructor(maxObjects: number, onEvict: (whole: DecodedResource, copy: DecodedResource) => void) {
    this.#onEvict = onEvict;
    this.#recent = new LRUCache({
      max: maxObjects,
      dispose: (_, key, reason) => {
        if (reason === "evict") this.#evict(key);
      },
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** How many objects are held. */
  get held(): number {
    return this.#holds.size;
  }

  get(key: ObjectKey): DecodedResource | undefined {
    return this.#entries.get(key);
  }

  has(key: ObjectKey): boolean {
    return this.#entries.has(key);
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#entries.keys();
  }

  [Symbol.iterator](): IterableIterator<[ObjectKey, DecodedResource]> {
    return this.#entries[Symbol.iterator]();
  }

  /** Takes a whole object, which may evict another one. */
  set(key: ObjectKey, entry: DecodedResource): void {
    this.#entries.set(key, entry);
    if (!this.#holds.has(key)) this.#recent.set(key, true);
  }

  delete(key: ObjectKey): void {
    this.#entries.delete(key);
    this.#recent.delete(key);
  }

  /** Marks an object as used. */
  touch(key: ObjectKey): void {
    this.#recent.get(key);
  }

  /** Keeps these objects from being evicted until `holder` releases them; what it held before is released. */
  hold(keys: ReadonlySet<ObjectKey>, holder: string): void {
    const before = this.#heldBy.get(holder);
    this.#heldBy.set(holder, keys);
    for (const key of keys) {
      this.#holds.set(key, (this.#holds.get(key) ?? 0) + 1);
      this.#recent.delete(key);
    }
    if (before !== undefined) this.#releaseAll(before);
  }

  /** Allows the eviction of the objects that `holder` holds. */
  release(holder: string): void {
    const keys = this.#heldBy.get(holder);
    if (keys === undefined) return;
    this.#heldBy.delete(holder);
    this.#releaseAll(keys);
  }

  #releaseAll(keys: ReadonlySet<ObjectKey>): void {
    for (const key of keys) {
      const left = this.#holds.get(key)! - 1;
      if (left > 0) {
        this.#holds.set(key, left);
        continue;
      }
      this.#holds.delete(key);
      const entry = this.#entries.get(key);
      if (entry !== undefined && !isEvictedCopy(entry.object)) this.#recent.set(key, true);
    }
  }

  #evict(key: ObjectKey): void {
    const whole = this.#entries.get(key)!;
    const copy = { object: createEvictedCopy(whole.object) };
    this.#entries.set(key, copy);
    this.#onEvict(whole, copy);
  }
}

const copies = new WeakSet<KubernetesObject>();

// As large as the object itself, and no mapper or selector reads it.
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Returns the copy that a bounded cache keeps of an evicted object: its kind and its metadata. */
export function createEvictedCopy({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { annotations, ...others } = metadata;
  const kept = annotations && Object.fromEntries(Object.entries(annotations).filter(([name]) => name !== LAST_APPLIED));
  const copy = { apiVersion, kind, metadata: { ...others, ...(kept === undefined ? {} : { annotations: kept }) } };
  copies.add(copy);
  return copy;
}

/** Tells whether an object is the copy of an evicted one. */
export function isEvictedCopy(object: KubernetesObject): boolean {
  return copies.has(object);
}

/** Tells whether an entry is the copy of an evicted object. */
export function isEvicted({ object }: DecodedResource): boolean {
  return isEvictedCopy(object);
}

/** Settings of a load. */
export interface LoadOptions {
  /** Keeps the objects from eviction until it is released. Default: they may be evicted at once. */
  readonly holder?: string;
  readonly signal?: AbortSignal;
}

/** The cache for which objects are read. */
export interface LoadingCache {
  /** Returns an object or its evicted copy. */
  find(key: ObjectKey): DecodedResource | undefined;
  /** Takes a state that the watch has not brought. */
  put(entry: DecodedResource): void;
  /** Replaces an evicted copy by the whole object. */
  complete(key: ObjectKey, entry: DecodedResource): void;
}

// The number of parallel fetches of one reconcile.
const FETCHED_AT_ONCE = 10;

/** Fetches evicted objects of a bounded cache. */
export class BoundedLoader {
  readonly #entries: BoundedEntries;
  readonly #bound: CacheBound;
  readonly #cache: LoadingCache;

  constructor(entries: BoundedEntries, bound: CacheBound, cache: LoadingCache) {
    this.#entries = entries;
    this.#bound = bound;
    this.#cache = cache;
  }

  /** Fetches those of these objects that are evicted. A state that the watch brings meanwhile wins. */
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
    // The object was deleted, or the watch has brought it.
    if (entry === undefined || copy === undefined) return;
    // A newer state is pending like the answer to a write: the watch will notify its change.
    if (versionOf(entry) !== versionOf(copy)) return this.#cache.put(entry);
    this.#cache.complete(key, entry);
  }
}
