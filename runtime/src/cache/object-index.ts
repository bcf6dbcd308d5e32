import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { synchronous } from "../base/promises.js";

/** Returns the values under which an index finds an object; one for which it throws is not found under that index. */
export type IndexFunction = (object: KubernetesObject) => readonly string[];

/** Told that an index function failed for an object, which is then not found under that index; without an error it no longer does. */
export type IndexReporter = (key: ObjectKey, error?: unknown) => void;

const NONE: ReadonlySet<ObjectKey> = new Set();

/** Finds the keys of objects by a value that a function reads from them. */
export class ObjectIndex {
  readonly #valuesOf: IndexFunction;
  readonly #report: IndexReporter | undefined;
  /** The objects for which the function failed. */
  readonly #failed = new Set<ObjectKey>();
  readonly #keys = new Map<string, Set<ObjectKey>>();
  /** The values of objects that are no longer whole, by what is left of them. */
  readonly #remembered = new WeakMap<KubernetesObject, readonly string[]>();
  #remembersAny = false;

  constructor(valuesOf: IndexFunction, report?: IndexReporter) {
    this.#valuesOf = valuesOf;
    this.#report = report;
  }

  /** How many values there are. */
  get size(): number {
    return this.#keys.size;
  }

  /** Returns the keys of the objects that have `value`. */
  keysOf(value: string): ReadonlySet<ObjectKey> {
    return this.#keys.get(value) ?? NONE;
  }

  /** Returns the values of an object; none if the function fails for it. */
  valuesOf(object: KubernetesObject): readonly string[] {
    const remembered = this.#remembersAny ? this.#remembered.get(object) : undefined;
    try {
      return remembered ?? this.#valuesOrThrow(object);
    } catch {
      return [];
    }
  }

  /** Takes that `copy` is what is left of an object: it has the same values, which cannot be read from it any more. */
  remember(copy: KubernetesObject, whole: KubernetesObject): void {
    this.#remembersAny = true;
    this.#remembered.set(copy, this.valuesOf(whole));
  }

  /** Takes what an object was, as it was taken before, and what it is; absent if it was or is not there. */
  update(key: ObjectKey, before: KubernetesObject | undefined, after: KubernetesObject | undefined): void {
    const hadFailed = this.#failed.size > 0 && this.#failed.delete(key);
    if (before !== undefined && !hadFailed) this.#remove(key, before);
    const hasFailed = after !== undefined && !this.#add(key, after);
    if (hadFailed && !hasFailed) this.#report?.(key);
  }

  /** Forgets everything. */
  clear(): void {
    this.#keys.clear();
    for (const key of this.#failed) this.#report?.(key);
    this.#failed.clear();
  }

  #add(key: ObjectKey, object: KubernetesObject): boolean {
    let values;
    try {
      values = (this.#remembersAny ? this.#remembered.get(object) : undefined) ?? this.#valuesOrThrow(object);
    } catch (error) {
      this.#failed.add(key);
      this.#report?.(key, error ?? new Error("it threw nothing"));
      return false;
    }
    for (const value of values) {
      const keys = this.#keys.get(value);
      if (keys === undefined) this.#keys.set(value, new Set([key]));
      else keys.add(key);
    }
    return true;
  }

  #valuesOrThrow(object: KubernetesObject): readonly string[] {
    const values: unknown = synchronous(this.#valuesOf(object));
    if (!Array.isArray(values)) throw new TypeError(`it returned ${typeof values}, and not a list of values`);
    return values as string[];
  }

  #remove(key: ObjectKey, object: KubernetesObject): void {
    for (const value of this.valuesOf(object)) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
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
  acquire(
    valuesOf: IndexFunction,
    known: () => Iterable<readonly [ObjectKey, KubernetesObject]>,
    report?: IndexReporter,
  ): void {
    const shared = this.#indexes.get(valuesOf);
    if (shared !== undefined) {
      shared.users++;
      return;
    }
    const index = new ObjectIndex(valuesOf, report);
    this.#indexes.set(valuesOf, { index, users: 1 });
    for (const [key, object] of known()) index.update(key, undefined, object);
  }

  /** Gives an index up; without users it is forgotten. */
  release(valuesOf: IndexFunction): void {
    const shared = this.#indexes.get(valuesOf);
    if (shared === undefined || --shared.users > 0) return;
    this.#indexes.delete(valuesOf);
    shared.index.clear();
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
    for (const { index } of this.#indexes.values()) index.update(key, before, after);
  }
}
