import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { synchronous, userCalls } from "../base/user-calls.js";

/** Returns the values under which an index finds an object. An object for which it throws is not indexed. */
export type IndexFunction = (object: KubernetesObject) => readonly string[];

/** Notified that an index function failed for an object, which is then not indexed; without `error`, that it succeeds again. */
export type IndexReporter = (key: ObjectKey, error?: unknown) => void;

const ofRuntime = new WeakSet<IndexFunction>();

/** Marks an index function as one of the runtime, which is not measured: it is called for every object. */
export function unmeasured(valuesOf: IndexFunction): IndexFunction {
  ofRuntime.add(valuesOf);
  return valuesOf;
}

/** Finds the keys of objects by a value that a function reads from them. */
export class ObjectIndex {
  /** How many readers share it. */
  users = 1;
  readonly #valuesOf: IndexFunction;
  readonly #report: IndexReporter | undefined;
  /** The objects for which the function failed. */
  readonly #failed = new Set<ObjectKey>();
  readonly #keys = new Map<string, Set<ObjectKey>>();
  /** The values of evicted objects, by their copies. */
  readonly #remembered = new WeakMap<KubernetesObject, readonly string[]>();

  constructor(valuesOf: IndexFunction, report?: IndexReporter) {
    this.#valuesOf = valuesOf;
    this.#report = report;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** The values under which objects are found. */
  get values(): Iterable<string> {
    return this.#keys.keys();
  }

  keysOf(value: string): ReadonlySet<ObjectKey> | undefined {
    return this.#keys.get(value);
  }

  /** Returns the values of an object; none if the function fails for it, after a call of `onFailure`. */
  valuesOf(object: KubernetesObject, onFailure = (_: unknown): void => {}): readonly string[] {
    const remembered = this.#remembered.get(object);
    if (remembered !== undefined) return remembered;
    try {
      const values: unknown = synchronous(this.#call(object));
      if (Array.isArray(values)) return values as string[];
      throw new TypeError(`it must return an array of values, but returned ${typeof values}`);
    } catch (error) {
      onFailure(error);
      return [];
    }
  }

  #call(object: KubernetesObject): readonly string[] {
    if (ofRuntime.has(this.#valuesOf)) return this.#valuesOf(object);
    return userCalls.run({ what: "an index function", object }, () => this.#valuesOf(object));
  }

  /** Remembers the values of an object that was evicted, for its copy. */
  remember(copy: KubernetesObject, whole: KubernetesObject): void {
    this.#remembered.set(copy, this.valuesOf(whole));
  }

  /** Replaces a state of an object by another; absent if there was or is none. */
  update(key: ObjectKey, before: KubernetesObject | undefined, after: KubernetesObject | undefined): void {
    const hadFailed = this.#failed.delete(key);
    const old = before === undefined || hadFailed ? [] : this.valuesOf(before);
    const onFailure = (error: unknown) => {
      this.#failed.add(key);
      this.#report?.(key, error ?? new Error("it threw nothing"));
    };
    this.move(key, old, after === undefined ? [] : this.valuesOf(after, onFailure));
    if (hadFailed && !this.#failed.has(key)) this.#report?.(key);
  }

  /** Replaces the values under which an object is found. */
  move(key: ObjectKey, before: readonly string[], after: readonly string[]): void {
    // Nearly always, and a map that loses and gets an entry over and over becomes slow to read.
    if (before.length === after.length && before.every((value, at) => value === after[at])) return;
    for (const value of before) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
    for (const value of after) this.#keys.set(value, (this.#keys.get(value) ?? new Set()).add(key));
  }

  clear(): void {
    this.#keys.clear();
    for (const key of this.#failed) this.#report?.(key);
    this.#failed.clear();
  }
}

/** The indexes of one cache by their functions; readers with the same function share one. */
export class ObjectIndexes {
  readonly #indexes = new Map<IndexFunction, ObjectIndex>();

  /** The number of values in all indexes. */
  get size(): number {
    return [...this].reduce((sum, { size }) => sum + size, 0);
  }

  [Symbol.iterator](): Iterator<ObjectIndex> {
    return this.#indexes.values();
  }

  get(valuesOf: IndexFunction | undefined): ObjectIndex | undefined {
    return valuesOf && this.#indexes.get(valuesOf);
  }

  /** Adds a user of an index; returns the index if it is new, and has to be filled. */
  add(valuesOf: IndexFunction, report?: IndexReporter): ObjectIndex | undefined {
    const shared = this.#indexes.get(valuesOf);
    if (shared !== undefined) return void shared.users++;
    const index = new ObjectIndex(valuesOf, report);
    this.#indexes.set(valuesOf, index);
    return index;
  }

  remove(valuesOf: IndexFunction): void {
    const shared = this.#indexes.get(valuesOf);
    if (shared === undefined || --shared.users > 0) return;
    this.#indexes.delete(valuesOf);
    shared.clear();
  }
}
