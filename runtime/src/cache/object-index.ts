import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { synchronous } from "../base/promises.js";

/** Returns the values under which an index finds an object. An object for which it throws is not indexed. */
export type IndexFunction = (object: KubernetesObject) => readonly string[];

/** Notified that an index function failed for an object, which is then not indexed; without `error`, that it succeeds again. */
export type IndexReporter = (key: ObjectKey, error?: unknown) => void;

const NONE: ReadonlySet<ObjectKey> = new Set();

/** Finds the keys of objects by a value that a function reads from them. */
export class ObjectIndex {
  readonly #valuesOf: IndexFunction;
  readonly #report: IndexReporter | undefined;
  /** The objects for which the function failed. */
  readonly #failed = new Set<ObjectKey>();
  readonly #keys = new Map<string, Set<ObjectKey>>();
  /** The values of evicted objects, by their copies. */
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

  /** Remembers the values of an object that was evicted, for its copy. */
  remember(copy: KubernetesObject, whole: KubernetesObject): void {
    this.#remembersAny = true;
    this.#remembered.set(copy, this.valuesOf(whole));
  }

  /** Replaces a state of an object by another; absent if there was or is none. */
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

/** The indexes of one cache by their functions. Readers with the same function share an index. */
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

  /** Adds an index of the known objects. Each call needs a `release`. */
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

  /** Ends one use of an index; the last one removes the index. */
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

  /** Remembers the values of an object that was evicted, for its copy. */
  remember(copy: KubernetesObject, whole: KubernetesObject): void {
    for (const { index } of this.#indexes.values()) index.remember(copy, whole);
  }

  /** Replaces a state of an object by another; absent if there was or is none. */
  update(key: ObjectKey, before: KubernetesObject | undefined, after: KubernetesObject | undefined): void {
    if (before === after) return;
    for (const { index } of this.#indexes.values()) index.update(key, before, after);
  }
}
