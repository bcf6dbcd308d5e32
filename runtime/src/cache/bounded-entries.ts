// The objects of a cache that keeps only some of them whole: the most recently used, and those that a reconcile under way needs.
import { LRUCache } from "lru-cache";
import type { ObjectKey, KubernetesObject } from "../base/kubernetes-object.js";
import { versionOf, type DecodedResource } from "../decode/decode-resource.js";

/** What a bounded cache is made of. */
export interface CacheBound {
  /** How many objects are kept whole. */
  readonly maxObjects: number;
  /** Reads an object that is not kept whole; undefined if it is gone. */
  fetch(key: ObjectKey, signal: AbortSignal | undefined): Promise<DecodedResource | undefined>;
}

/** Entries by key, of which at most so many are whole; of the others the metadata are left. */
export class BoundedEntries {
  /** Whole or evicted. */
  readonly #entries = new Map<ObjectKey, DecodedResource>();
  /** Those that are whole and may be evicted. */
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

  /** Takes a whole object, for which another one may have to make room. */
  set(key: ObjectKey, entry: DecodedResource): void {
    this.#entries.set(key, entry);
    if (!this.#holds.has(key)) this.#recent.set(key, true);
  }

  delete(key: ObjectKey): void {
    this.#entries.delete(key);
    this.#recent.delete(key);
  }

  /** Says that an object is being used. */
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

  /** Lets go of what `holder` holds. */
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

// It has the size of the object itself, and nobody maps or selects by it.
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Returns what a bounded cache keeps of an object that had to make room: what it is, and its metadata. */
export function createEvictedCopy({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { annotations, ...others } = metadata;
  const kept = annotations && Object.fromEntries(Object.entries(annotations).filter(([name]) => name !== LAST_APPLIED));
  const copy = { apiVersion, kind, metadata: { ...others, ...(kept === undefined ? {} : { annotations: kept }) } };
  copies.add(copy);
  return copy;
}

/** Tells whether an object is only what a bounded cache keeps of it. */
export function isEvictedCopy(object: KubernetesObject): boolean {
  return copies.has(object);
}

/** Tells whether an entry is only what a bounded cache keeps of an object. */
export function isEvicted({ object }: DecodedResource): boolean {
  return isEvictedCopy(object);
}

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
