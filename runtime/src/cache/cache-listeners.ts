import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { CacheListener, ResourceChange } from "./resource-change.js";

/** Those who are told what a cache learns. */
export class CacheListeners {
  readonly #all = new Set<CacheListener>();

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** Tells `listener` from now on; returns how to end that. */
  add(listener: CacheListener): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  tellChange(change: ResourceChange, version: string): void {
    for (const listener of this.#all) listener.onChange(change, version);
  }

  /** Tells that an object is gone that was known from an answer only. */
  tellGhost(key: ObjectKey, object: KubernetesObject, version: string): void {
    const change = { kind: "deleted", key, object, isInitial: true, isFinalStateUnknown: true } as const;
    for (const listener of this.#all) listener.onGhost(change, version);
  }

  tellListBegun(): void {
    for (const listener of this.#all) listener.onListBegun();
  }

  tellListEnded(version: string): void {
    for (const listener of this.#all) listener.onListEnded(version);
  }

  tellVersion(version: string): void {
    for (const listener of this.#all) listener.onVersion(version);
  }
}
