import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";

/** Returns the values under which an index finds an object. */
export type IndexFunction = (object: KubernetesObject) => readonly string[];

const NONE: ReadonlySet<ObjectKey> = new Set();

/** Finds the keys of objects by a value that a function reads from them. */
export class ObjectIndex {
  readonly #valuesOf: IndexFunction;
  readonly #keys = new Map<string, Set<ObjectKey>>();
  /** The values of objects that are no longer whole, by what is left of them. */
  readonly #remembered = new WeakMap<KubernetesObject, readonly string[]>();
  #remembersAny = false;

  constructor(valuesOf: IndexFunction) {
    this.#valuesOf = valuesOf;
  }

  /** How many values there are. */
  get size(): number {
    return this.#keys.size;
  }

  /** Returns the keys of the objects that have `value`. */
  keysOf(value: string): ReadonlySet<ObjectKey> {
    return this.#keys.get(value) ?? NONE;
  }

  /** Returns the values under which an object is found. */
  valuesOf(object: KubernetesObject): readonly string[] {
    const remembered = this.#remembersAny ? this.#remembered.get(object) : undefined;
    return remembered ?? this.#valuesOf(object);
  }

  /** Takes that `copy` is what is left of an object: it has the same values, which cannot be read from it any more. */
  remember(copy: KubernetesObject, whole: KubernetesObject): void {
    this.#remembersAny = true;
    this.#remembered.set(copy, this.#valuesOf(whole));
  }

  /** Takes an object that is new or has replaced the one before. */
  add(key: ObjectKey, object: KubernetesObject): void {
    for (const value of this.valuesOf(object)) {
      const keys = this.#keys.get(value);
      if (keys === undefined) this.#keys.set(value, new Set([key]));
      else keys.add(key);
    }
  }

  /** Forgets an object, given the state that was added. */
  remove(key: ObjectKey, object: KubernetesObject): void {
    for (const value of this.valuesOf(object)) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
  }

  clear(): void {
    this.#keys.clear();
  }
}

/** The indexes over one cache by their functions; one that several readers ask for is kept once. */
export class SharedIndexes {
  readonly #indexes = new Map<IndexFunction, { readonly index: ObjectIndex; users: number }>();

  /** How many values all indexes have. */
  get size(): number {
    let size = 0;
    for (const { index } of this.#indexes.values()) size += index.size;
    return size;
  }

  get isEmpty(): boolean {
    return this.#indexes.size === 0;
  }

  /** Adds an index over what is known; each call needs a `release`. */
  acquire(valuesOf: IndexFunction, known: () => Iterable<readonly [ObjectKey, KubernetesObject]>): void {
    const shared = this.#indexes.get(valuesOf);
    if (shared !== undefined) {
      shared.users++;
      return;
    }
    const index = new ObjectIndex(valuesOf);
    this.#indexes.set(valuesOf, { index, users: 1 });
    for (const [key, object] of known()) index.add(key, object);
  }

  /** Gives an index up; without users it is forgotten. */
  release(valuesOf: IndexFunction): void {
    const shared = this.#indexes.get(valuesOf);
    if (shared !== undefined && --shared.users === 0) this.#indexes.delete(valuesOf);
  }

  /** Returns the keys of the objects for which the function gave `value`. */
  keysOf(valuesOf: IndexFunction, value: string): ReadonlySet<ObjectKey> {
    return this.#indexes.get(valuesOf)?.index.keysOf(value) ?? NONE;
  }

  /** Returns the values of an object; undefined if there is no such index. */
  valuesOf(valuesOf: IndexFunction, object: KubernetesObject): readonly string[] | undefined {
    return this.#indexes.get(valuesOf)?.index.valuesOf(object);
  }

  /** Takes that `copy` is what is left of an object. */
  remember(copy: KubernetesObject, whole: KubernetesObject): void {
    for (const { index } of this.#indexes.values()) index.remember(copy, whole);
  }

  /** Takes what an object was and is; absent if it was or is not there. */
  update(key: ObjectKey, before: KubernetesObject | undefined, after: KubernetesObject | undefined): void {
    if (before === after) return;
    for (const { index } of this.#indexes.values()) {
      if (before !== undefined) index.remove(key, before);
      if (after !== undefined) index.add(key, after);
    }
  }

  clear(): void {
    for (const { index } of this.#indexes.values()) index.clear();
  }
}
