// The objects of a cache that keeps only some of them whole: the most recently used, and those that a reconcile under way needs.
import { LRUCache } from "lru-cache";
import type { ObjectKey, KubernetesObject } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../decode/decode-resource.js";

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

  clear(): void {
    this.#entries.clear();
    this.#recent.clear();
    this.#holds.clear();
    this.#heldBy.clear();
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
