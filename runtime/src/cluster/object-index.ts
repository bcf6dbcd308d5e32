import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";

/** Returns the values under which an index finds an object. */
export type IndexFunction = (object: KubernetesObject) => readonly string[];

const NONE: ReadonlySet<ObjectKey> = new Set();

/** Finds the keys of objects by a value that a function reads from them. */
export class ObjectIndex {
  readonly #valuesOf: IndexFunction;
  readonly #keys = new Map<string, Set<ObjectKey>>();

  constructor(valuesOf: IndexFunction) {
    this.#valuesOf = valuesOf;
  }

  /** Returns the keys of the objects that have `value`. */
  keysOf(value: string): ReadonlySet<ObjectKey> {
    return this.#keys.get(value) ?? NONE;
  }

  /** Takes an object that is new or has replaced the one before. */
  add(key: ObjectKey, object: KubernetesObject): void {
    for (const value of this.#valuesOf(object)) {
      const keys = this.#keys.get(value);
      if (keys === undefined) this.#keys.set(value, new Set([key]));
      else keys.add(key);
    }
  }

  /** Forgets an object, given the state that was added. */
  remove(key: ObjectKey, object: KubernetesObject): void {
    for (const value of this.#valuesOf(object)) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
  }
}
