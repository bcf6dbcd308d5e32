// Which objects a cache keeps whole if it keeps only some: the most recently used, and those that a running reconcile needs.
import { type DecodedResource, type KubernetesObject, type ObjectKey, versionOf } from "../base/kubernetes-object.js";

/** The bound of a cache. */
export interface CacheBound {
  readonly maxObjects: number;
  /** Fetches an evicted object; undefined if it was deleted. */
  fetch(key: ObjectKey, signal: AbortSignal | undefined): Promise<DecodedResource | undefined>;
}

/** The cache that is bounded, as far as evictions and fetches need it. */
interface BoundedStore {
  readonly observed: ReadonlyMap<ObjectKey, DecodedResource>;
  /** Returns an object, or the copy that is left of an evicted one. */
  peek(key: ObjectKey): DecodedResource | undefined;
  /** Takes a newer state as pending, like the answer to a write. */
  put(entry: DecodedResource): void;
  /** Takes a whole object in the place of its copy. */
  take(key: ObjectKey, entry: DecodedResource): void;
  /** Replaces an object by its copy. */
  evict(key: ObjectKey): void;
}

/** Settings of a load. */
export interface LoadOptions {
  /** Keeps the objects from eviction until it is released. Default: they may be evicted at once. */
  readonly holder?: string;
  readonly signal?: AbortSignal;
}

// The number of parallel fetches of one reconcile.
const FETCHED_AT_ONCE = 10;

/** The keys of the whole objects of a bounded cache. The copy of an evicted object has only the metadata. */
export class BoundedObjects {
  readonly #bound: CacheBound;
  readonly #cache: BoundedStore;
  /** The objects that may be evicted, the least recently used first. */
  readonly #recent = new Set<ObjectKey>();
  /** What each holder keeps from eviction. */
  readonly #heldBy = new Map<string, ReadonlySet<ObjectKey>>();

  constructor(bound: CacheBound, cache: BoundedStore) {
    this.#bound = bound;
    this.#cache = cache;
  }

  get held(): number {
    return new Set([...this.#heldBy.values()].flatMap((keys) => [...keys])).size;
  }

  /** Takes the key of a whole object, which may evict another one. */
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

  /** Fetches those of these objects that are evicted. A state that the watch brings meanwhile wins. */
  async load(keys: Iterable<ObjectKey>, { holder, signal }: LoadOptions): Promise<void> {
    const wanted = new Set(keys);
    if (holder !== undefined) this.#hold(holder, wanted);
    const missing = [...wanted].filter((key) => this.#copyOf(key) !== undefined);
    for (let start = 0; start < missing.length; start += FETCHED_AT_ONCE)
      await Promise.all(missing.slice(start, start + FETCHED_AT_ONCE).map((key) => this.#fetch(key, signal)));
  }

  /** Allows the eviction of the objects that were loaded for `holder`. */
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
    // The object was deleted, or the watch has brought it.
    if (entry === undefined || copy === undefined) return;
    // A newer state is pending like the answer to a write: the watch will notify its change.
    if (versionOf(entry) !== versionOf(copy)) return this.#cache.put(entry);
    this.#cache.take(key, entry);
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
export function isEvicted(object: KubernetesObject): boolean {
  return copies.has(object);
}
