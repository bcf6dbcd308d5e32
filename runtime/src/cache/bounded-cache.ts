// Determines which objects a bounded cache keeps whole: the most recently used ones, and those that a reconcile in progress needs.
import { type DecodedResource, type KubernetesObject, type ObjectKey, versionOf } from "../base/kubernetes-object.js";

/** The limit of a bounded cache. */
export interface CacheBound {
  readonly maxObjects: number;
  /** Reads an evicted object from the API server; undefined if it was deleted. */
  fetch(key: ObjectKey, signal: AbortSignal | undefined): Promise<DecodedResource | undefined>;
}

/** The operations of the bounded cache that evictions and fetches need. */
interface BoundedStore {
  readonly observed: ReadonlyMap<ObjectKey, DecodedResource>;
  /** Returns an object, or the copy that remains of an evicted one. */
  peek(key: ObjectKey): DecodedResource | undefined;
  /** Adds a newer state as pending, like the response to a write. */
  put(entry: DecodedResource): void;
  /** Replaces the copy of an evicted object with the whole object. */
  take(key: ObjectKey, entry: DecodedResource): void;
  /** Replaces an object with its copy. */
  evict(key: ObjectKey): void;
}

/** Options of a load. */
export interface LoadOptions {
  /** Protects the objects from eviction until `release` is called for this holder. Default: they may be evicted immediately */
  readonly holder?: string;
  readonly signal?: AbortSignal;
}

// The maximum number of parallel fetches of a load.
const FETCHED_AT_ONCE = 10;

/** Tracks the whole objects of a bounded cache by key. Of an evicted object, the cache keeps a copy with only the metadata. */
export class BoundedObjects {
  readonly #bound: CacheBound;
  readonly #cache: BoundedStore;
  /** The objects that may be evicted, least recently used first. */
  readonly #recent = new Set<ObjectKey>();
  /** The objects that each holder protects from eviction. */
  readonly #heldBy = new Map<string, ReadonlySet<ObjectKey>>();

  constructor(bound: CacheBound, cache: BoundedStore) {
    this.#bound = bound;
    this.#cache = cache;
  }

  get held(): number {
    return new Set([...this.#heldBy.values()].flatMap((keys) => [...keys])).size;
  }

  /** Adds the key of a whole object. May evict another object. */
  add(key: ObjectKey): void {
    if ([...this.#heldBy.values()].some((keys) => keys.has(key))) return;
    this.#recent.delete(key);
    this.#recent.add(key);
    if (this.#recent.size <= this.#bound.maxObjects) return;
    const [oldest] = this.#recent;
    this.#recent.delete(oldest!);
    this.#cache.evict(oldest!);
  }

  touch(key: ObjectKey): void {
    if (this.#recent.delete(key)) this.#recent.add(key);
  }

  delete(key: ObjectKey): void {
    this.#recent.delete(key);
  }

  /** Fetches those of the objects that are evicted. If the watch delivers a newer state in the meantime, that state is kept. */
  async load(keys: Iterable<ObjectKey>, { holder, signal }: LoadOptions): Promise<void> {
    const wanted = new Set(keys);
    if (holder !== undefined) this.#hold(holder, wanted);
    const missing = [...wanted].filter((key) => this.#copyOf(key) !== undefined);
    for (let start = 0; start < missing.length; start += FETCHED_AT_ONCE)
      await Promise.all(missing.slice(start, start + FETCHED_AT_ONCE).map((key) => this.#fetch(key, signal)));
  }

  /** Allows the objects that were loaded for `holder` to be evicted. */
  release(holder: string): void {
    this.#hold(holder, new Set());
    this.#heldBy.delete(holder);
  }

  #hold(holder: string, keys: ReadonlySet<ObjectKey>): void {
    const before = this.#heldBy.get(holder) ?? [];
    this.#heldBy.set(holder, keys);
    for (const key of keys) this.#recent.delete(key);
    for (const key of before) {
      const entry = this.#cache.observed.get(key);
      if (entry !== undefined && !isEvicted(entry.object)) this.add(key);
    }
  }

  #copyOf(key: ObjectKey): DecodedResource | undefined {
    const entry = this.#cache.peek(key);
    return entry !== undefined && isEvicted(entry.object) ? entry : undefined;
  }

  async #fetch(key: ObjectKey, signal: AbortSignal | undefined): Promise<void> {
    const entry = await this.#bound.fetch(key, signal);
    const copy = this.#copyOf(key);
    // The object was deleted, or the watch has delivered it in the meantime.
    if (entry === undefined || copy === undefined) return;
    // A newer state is pending, like the response to a write: its watch event has yet to notify the listeners.
    if (versionOf(entry) !== versionOf(copy)) return this.#cache.put(entry);
    this.#cache.take(key, entry);
  }
}

const copies = new WeakSet<KubernetesObject>();

// The annotation is as large as the object itself, and neither mappers nor selectors read it.
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Returns the copy that a bounded cache keeps of an evicted object: apiVersion, kind and metadata. */
export function createEvictedCopy({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { annotations, ...others } = metadata;
  const kept = annotations && Object.fromEntries(Object.entries(annotations).filter(([name]) => name !== LAST_APPLIED));
  const copy = { apiVersion, kind, metadata: { ...others, ...(kept === undefined ? {} : { annotations: kept }) } };
  copies.add(copy);
  return copy;
}

/** Returns whether an object is the copy of an evicted one. */
export function isEvicted(object: KubernetesObject): boolean {
  return copies.has(object);
}
