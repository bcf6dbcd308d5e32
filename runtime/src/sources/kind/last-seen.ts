import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";

// Enough for the objects of a namespace that is deleted; the bound keeps a fleet that loses its objects for good from growing.
const MAX_OBJECTS = 1_000;

interface Deleted {
  readonly object: KubernetesObject;
  readonly primaries: Set<ObjectKey>;
}

/**
 * The last states of objects that other clients deleted, for the primaries that they belong to: the cleanup of a primary may need an object that
 * is already gone. They are kept for living primaries as well, since the deletion of the object may arrive before that of the primary.
 */
export class LastSeen {
  readonly #deleted = new Map<ObjectKey, Deleted>();

  /** Keeps the last state of a deleted object for these primaries. The oldest objects are dropped beyond 1,000. */
  add(key: ObjectKey, object: KubernetesObject, primaries: Iterable<ObjectKey>): void {
    const concerned = new Set(primaries);
    this.#deleted.delete(key);
    if (concerned.size === 0) return;
    this.#deleted.set(key, { object, primaries: concerned });
    if (this.#deleted.size <= MAX_OBJECTS) return;
    for (const oldest of this.#deleted.keys()) return void this.#deleted.delete(oldest);
  }

  /** Drops an object that exists again for these primaries. */
  delete(key: ObjectKey, primaries: Iterable<ObjectKey>): void {
    const known = this.#deleted.get(key);
    if (known === undefined) return;
    for (const primary of primaries) known.primaries.delete(primary);
    if (known.primaries.size === 0) this.#deleted.delete(key);
  }

  /** Drops everything that is kept for a primary. */
  release(primary: ObjectKey): void {
    for (const key of this.#deleted.keys()) this.delete(key, [primary]);
  }

  clear(): void {
    this.#deleted.clear();
  }

  of(primary: ObjectKey): readonly KubernetesObject[] {
    return [...this.#deleted.values()].flatMap(({ object, primaries }) => (primaries.has(primary) ? object : []));
  }
}
