// The objects that one list-watch brings, overlaid with pending writes: the answers to own writes (JOSDK TemporaryResourceCache).
// Promises: a write is visible to the next read; an older state never replaces a newer one; a deleted object does not come back.
// Listeners are notified of everything that the watch brings, of an object that was re-created unseen as deleted and added. Each listener
// recognises its own writes itself (see OwnEvents in resource-view.ts). Indexes find objects by values that a function reads from them, as
// client-go's Indexer does.
import {
  type DecodedResource,
  type KubernetesObject,
  type ManagedWrite,
  type ObjectKey,
  type OwnedFields,
  isNewerVersion,
  keyOf,
  uidOf,
  versionOf,
} from "../base/kubernetes-object.js";
import { deepFreeze } from "../base/lazy-object.js";
import { synchronous, userCalls } from "../base/user-calls.js";
import { BoundedObjects, type CacheBound, createEvictedCopy, isEvicted } from "./bounded-cache.js";

/** A change of an object. */
export interface ResourceChange {
  readonly kind: "added" | "updated" | "deleted";
  readonly key: ObjectKey;
  /** The state after the change; the last state of a deleted object. */
  readonly object: KubernetesObject;
  /** What the controllers of the operator applied to the object in this state. */
  readonly owned?: readonly OwnedFields[] | undefined;
  /** The state before the change, as the watch had it; absent if there was none. */
  readonly old?: KubernetesObject | undefined;
  /** The latest write of the field managers of the operator, if the watch brought the change. */
  readonly written?: ManagedWrite | undefined;
  /** Whether a list brought the change, and not the watch. */
  readonly isInitial: boolean;
  /** The primary whose reconcile alone made the change: it needs no event. Absent if another client, or another reconcile, took part. */
  readonly madeFor?: ObjectKey | undefined;
  /** Whether the deletion went unseen, so that `object` may not be the last state. */
  readonly isFinalStateUnknown?: boolean;
}

/** Returns the event of a deletion that no watch brought, with the last known state of the object. */
export function unseenDeletionOf(object: KubernetesObject, isInitial = true): ResourceChange {
  return { kind: "deleted", key: keyOf(object.metadata), object, old: object, isInitial, isFinalStateUnknown: true };
}

/** Notified of what a cache learns, in the same turn of the event loop. */
interface CacheListener {
  /** `version` is the version of the event. */
  onChange(change: ResourceChange, version: string): void;
  /** The watch has reached `version`, by a bookmark or a list. */
  onVersion(version: string): void;
  /** The store of the API server was restored: no event of an own write will come. */
  onReset(): void;
}

interface ResourceCacheOptions {
  readonly comparesVersions?: boolean;
  /** Bounds the number of whole objects. Default: no bound. */
  readonly bound?: CacheBound | undefined;
  /** Tells whether a cached kind may be newer than the API server, because its store was restored. Default: false. */
  readonly isServerOutdated?: (() => boolean) | undefined;
}

/** The objects that one list-watch follows, by key and by index; what it returns is frozen and shared by all readers. */
export class ResourceCache {
  /** Whether versions of this kind can be compared. If not, a write is unknown until the watch brings it. */
  readonly comparesVersions: boolean;
  readonly #observed = new Map<ObjectKey, DecodedResource>();
  /** The states that the watch brought, and evicted copies, without pending writes. */
  readonly observed: ReadonlyMap<ObjectKey, DecodedResource> = this.#observed;
  /** Which objects are whole; absent if all are. */
  readonly bounded: BoundedObjects | undefined;
  readonly #isServerOutdated: () => boolean;
  /** The newest answers to own writes, the oldest first, until the watch reaches their versions. */
  readonly #pending = new Map<ObjectKey, DecodedResource>();
  readonly ownDeletions = new OwnDeletions();
  readonly #observedDeletions = new ObservedDeletions();
  readonly #indexes = new ObjectIndexes();
  readonly #listeners = new Set<CacheListener>();
  /** The version that the watch has reached. */
  observedVersion = "0";
  /** The cached objects that the list under way has not brought; absent while there is none. */
  #unlisted: Set<ObjectKey> | undefined;
  /** Whether the list under way comes from a restored server, and replaces newer states. */
  #isReplacing = false;

  constructor({ comparesVersions = true, bound, isServerOutdated = () => false }: ResourceCacheOptions = {}) {
    this.comparesVersions = comparesVersions;
    this.#isServerOutdated = isServerOutdated;
    this.bounded = bound && new BoundedObjects(bound, this);
  }

  subscribe(listener: CacheListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether the API server was restored and is not listed again yet: no write may be derived from this cache. */
  get isOutdated(): boolean {
    return this.#isReplacing || this.#isServerOutdated();
  }

  /** Counts what is kept, for leak tests. */
  get counts(): { observed: number; pending: number; ownDeletions: number; indexed: number; held: number } {
    const [observed, pending, ownDeletions] = [this.#observed.size, this.#pending.size, this.ownDeletions.size];
    return { observed, pending, ownDeletions, indexed: this.#indexes.size, held: this.bounded?.held ?? 0 };
  }

  /** Returns an object; undefined if it is unknown or evicted. */
  get(key: ObjectKey): DecodedResource | undefined {
    const entry = this.peek(key);
    if (entry === undefined || this.#isEvicted(entry)) return undefined;
    this.bounded?.touch(key);
    return entry;
  }

  /** Returns an object, or the copy that is left of an evicted one. */
  peek(key: ObjectKey): DecodedResource | undefined {
    const entry = this.#find(key);
    if (entry !== undefined) deepFreeze(entry.object);
    return entry;
  }

  /** Tells whether an object is known, whole or evicted. */
  has(key: ObjectKey): boolean {
    return this.#find(key) !== undefined;
  }

  *keys(): IterableIterator<ObjectKey> {
    for (const key of this.#observed.keys()) if (this.ownDeletions.size === 0 || this.has(key)) yield key;
    for (const key of this.#pending.keys()) if (!this.#observed.has(key)) yield key;
  }

  /** Returns this version of an object, if it is cached or the answer to an own write. */
  getVersion(key: ObjectKey, version: string): DecodedResource | undefined {
    const known = [this.#pending.get(key), this.#observed.get(key)];
    return known.find((entry) => entry && versionOf(entry) === version && !this.#isEvicted(entry));
  }

  /** Indexes the objects by the values that a function returns, until it is removed as often as it was added. */
  addIndex(valuesOf: IndexFunction, report?: IndexReporter): void {
    const index = this.#indexes.add(valuesOf, report);
    if (index !== undefined) for (const key of this.keys()) index.update(key, undefined, this.#find(key)!.object);
  }

  removeIndex(valuesOf: IndexFunction): void {
    this.#indexes.remove(valuesOf);
  }

  /** Returns the index of a function; undefined if there is none. */
  indexOf(valuesOf: IndexFunction | undefined): ObjectIndex | undefined {
    return this.#indexes.get(valuesOf);
  }

  /**
   * Takes a state that the watch or the list under way brings, unless a newer one is cached, and notifies the listeners. `written` is the latest
   * write of the field managers, which is not kept.
   */
  observe(entry: DecodedResource, written?: ManagedWrite): void {
    const { object, owned } = entry;
    const key = keyOf(object.metadata);
    const version = versionOf(entry);
    const isInitial = this.#unlisted !== undefined;
    this.#unlisted?.delete(key);
    const known = this.#observed.get(key);
    // A watch that tells of a deletion too early does not bring the object back.
    if (known === undefined && !isInitial && this.#observedDeletions.covers(key, version))
      return this.#advance(version);
    if (known === undefined || this.#isReplacing || this.#isNews(version, versionOf(known))) {
      this.take(key, entry);
      const isAnother = known !== undefined && uidOf(known) !== uidOf(entry);
      if (isAnother) this.#notify(unseenDeletionOf(known.object, isInitial), versionOf(known));
      const old = isAnother ? undefined : known?.object;
      // Generations of a restored server went back with the versions: as an update, the change would be filtered out.
      const kind = old === undefined || this.#isReplacing ? "added" : "updated";
      this.#notify({ kind, key, object, owned, old, isInitial, ...(written && { written }) }, version);
    }
    if (!isInitial) this.#advance(version);
  }

  /** Whether the watch has yet to bring a pending write. */
  get expectsOwn(): boolean {
    return this.#pending.size > 0;
  }

  /** Takes a deletion from the watch, or during a list. `object` is the last state, with the version of the deletion if it is known. */
  observeDeletion(object: KubernetesObject): void {
    const key = keyOf(object.metadata);
    if (this.#unlisted !== undefined) return void (this.#observed.has(key) && this.#unlisted.add(key));
    const version = object.metadata.resourceVersion ?? "0";
    const known = this.#observed.get(key);
    const isOld =
      known === undefined ? this.#observedDeletions.covers(key, version) : isNewerVersion(versionOf(known), version);
    if (!isOld || !this.comparesVersions) this.#delete(object, version);
    if (!isOld && this.comparesVersions) this.#observedDeletions.add(key, version);
    this.#advance(version);
  }

  /** Takes the version of a bookmark. */
  observeVersion(version: string): void {
    this.#advance(version);
    // A watch that has passed an object without bringing it will not bring its deletion either.
    for (const { metadata } of this.ownDeletions.passedBy(version, this.#observed))
      this.ownDeletions.delete(keyOf(metadata), metadata.uid);
    for (const listener of this.#listeners) listener.onVersion(version);
  }

  /**
   * Begins a list, until `endReplace`, and drops one under way. A list of a server that `isRestored` is older than the cache: its objects replace
   * all cached ones, and own writes and deletions that the watch has not brought are dropped, as they may be undone.
   */
  beginReplace({ isRestored = false }: { readonly isRestored?: boolean } = {}): void {
    this.#unlisted = new Set(this.#observed.keys());
    this.#isReplacing = isRestored;
    if (!isRestored) return;
    for (const listener of this.#listeners) listener.onReset();
    this.#observedDeletions.clear();
    this.#forgetOwn();
    this.observedVersion = "0";
  }

  /** Takes the key and version of a listed object. Returns false if that version is not cached, and has to be decoded. */
  observeKnown(key: ObjectKey, version: string): boolean {
    const known = this.#observed.get(key);
    if (known === undefined || versionOf(known) !== version || this.#isReplacing) return false;
    this.#unlisted?.delete(key);
    return true;
  }

  /** Ends the list, which is as of `version`. Cached objects that it lacks were deleted unseen. */
  endReplace(version: string): void {
    for (const key of this.#unlisted!) {
      const known = this.#observed.get(key);
      if (known !== undefined) this.#delete(known.object, version, { isUnseen: true });
    }
    this.#forgetOwn(version);
    this.#advance(version);
    this.#unlisted = undefined;
    this.#isReplacing = false;
    for (const listener of this.#listeners) listener.onVersion(version);
  }

  /** Takes the answer to an own write as pending, unless the watch has reached its version already. */
  put(entry: DecodedResource): void {
    const key = keyOf(entry.object.metadata);
    const version = versionOf(entry);
    if (!this.comparesVersions || this.#isReplacing || this.#isEvicted(entry)) return;
    if (!isNewerVersion(version, this.observedVersion)) return;
    if (this.ownDeletions.covers(key, entry)) return;
    const answer = this.#pending.get(key);
    if (answer !== undefined && !isNewerVersion(version, versionOf(answer))) return;
    this.#change(key, () => {
      this.#pending.delete(key);
      this.#pending.set(key, entry);
    });
  }

  /** Hides an object that the controller of the views `by` has deleted, until the watch brings the deletion. */
  removeOwn(key: ObjectKey, uid: string, by: Deleter): void {
    if (!this.comparesVersions || this.#isReplacing) return;
    const answer = this.#pending.get(key);
    const known = uidOf(answer) === uid ? answer : this.#observed.get(key);
    // The object may have been re-created since, and even deleted again.
    if (known === undefined || uidOf(known) !== uid || this.ownDeletions.covers(key, known)) return;
    this.#change(key, () => {
      this.ownDeletions.set(key, known, by);
      if (known === answer) this.#pending.delete(key);
    });
  }

  #isEvicted({ object }: DecodedResource): boolean {
    return this.bounded !== undefined && isEvicted(object);
  }

  #find(key: ObjectKey): DecodedResource | undefined {
    const answer = this.#pending.get(key);
    const entry = this.#observed.get(key);
    // A list may have brought a newer state than the answer, which is forgotten at its end.
    if (answer !== undefined && (entry === undefined || isNewerVersion(versionOf(answer), versionOf(entry))))
      return answer;
    return entry === undefined || this.ownDeletions.covers(key, entry) ? undefined : entry;
  }

  /** Takes a whole object in the place of an older state, or of its evicted copy, without a notification. */
  take(key: ObjectKey, entry: DecodedResource): void {
    this.#change(key, () => {
      this.#observed.set(key, entry);
      this.bounded?.add(key);
    });
  }

  /** Keeps only a copy of an object, without a notification. */
  evict(key: ObjectKey): void {
    const { object } = this.#observed.get(key)!;
    const copy = createEvictedCopy(object);
    this.#observed.set(key, { object: copy });
    // The copy does not say under which values an index holds the object.
    for (const index of this.#indexes) index.remember(copy, object);
  }

  #delete(object: KubernetesObject, version?: string, { isUnseen = false } = {}): void {
    const key = keyOf(object.metadata);
    const known = this.#observed.get(key);
    const answer = this.#pending.get(key);
    // A deletion that went unseen has no version of its own. The version of the first list without the object is an upper bound. A pending
    // write of a re-created object is another object, which gets its own notification.
    const isPassed = answer !== undefined && (version === undefined || !isNewerVersion(versionOf(answer), version));
    const isOther = isUnseen && uidOf(answer) !== object.metadata.uid;
    this.#change(key, () => {
      this.#observed.delete(key);
      this.bounded?.delete(key);
      if (isPassed && !isOther) this.#pending.delete(key);
    });
    const how = { isInitial: isUnseen, isFinalStateUnknown: isUnseen };
    this.#notify({ kind: "deleted", key, object, old: known?.object, ...how }, version ?? "0");
  }

  #advance(version: string): void {
    if (!this.#isNews(version, this.observedVersion)) return;
    this.observedVersion = version;
    // The watch passes a pending write without bringing it if the selector does not match the object.
    for (const [key, answer] of this.#pending) {
      if (isNewerVersion(versionOf(answer), version)) return;
      this.#change(key, () => this.#pending.delete(key));
    }
  }

  /** Forgets own deletions and writes that a watch at `version` will not bring, or all; objects known from them alone are reported as deleted. */
  #forgetOwn(version?: string): void {
    for (const object of this.ownDeletions.passedBy(version, this.#observed)) {
      const key = keyOf(object.metadata);
      if (!this.#observed.has(key)) this.#delete(object, version, { isUnseen: true });
      else this.#change(key, () => this.ownDeletions.delete(key, object.metadata.uid));
    }
    for (const [key, answer] of this.#pending) {
      if (version !== undefined && isNewerVersion(versionOf(answer), version)) continue;
      if (!this.#observed.has(key)) this.#delete(answer.object, version, { isUnseen: true });
      else this.#change(key, () => this.#pending.delete(key));
    }
  }

  #notify(change: ResourceChange, version: string): void {
    for (const listener of this.#listeners) listener.onChange(change, version);
    // Only now: listeners ask whose deletion it is.
    if (change.kind === "deleted") this.ownDeletions.delete(change.key, change.object.metadata.uid);
  }

  #isNews(version: string, before: string): boolean {
    return this.comparesVersions ? isNewerVersion(version, before) : version !== before;
  }

  #change(key: ObjectKey, change: () => void): void {
    const before = this.#find(key)?.object;
    change();
    const after = this.#find(key)?.object;
    if (before !== after) for (const index of this.#indexes) index.update(key, before, after);
  }
}

/** Who deleted an object: a controller, by what shows it the object, and the primary for whose reconcile it did. */
interface Deleter {
  /** Compared by identity. */
  readonly views: readonly object[];
  readonly madeFor?: ObjectKey | undefined;
}

/** Own deletions by key, until the watch brings them. */
class OwnDeletions {
  /** With the last known state: every state up to its version is gone. */
  readonly #deletions = new Map<ObjectKey, { readonly entry: DecodedResource; readonly by: Deleter }>();

  get size(): number {
    return this.#deletions.size;
  }

  /** Remembers that a controller deleted an object whose last known state is `entry`. */
  set(key: ObjectKey, entry: DecodedResource, by: Deleter): void {
    this.#deletions.set(key, { entry, by });
  }

  /** Tells whether a state belongs to a deleted object, or is older than its deletion. */
  covers(key: ObjectKey, entry: DecodedResource): boolean {
    const deleted = this.#deletions.get(key)?.entry;
    if (deleted === undefined) return false;
    return uidOf(deleted) === uidOf(entry) || !isNewerVersion(versionOf(entry), versionOf(deleted));
  }

  /** Returns the deleter of an object if it is the controller of a view, and the watch has not brought the deletion yet. */
  changeOf(key: ObjectKey, { metadata }: KubernetesObject, view: object): Deleter | undefined {
    const deletion = this.#deletions.get(key);
    const isOwn = deletion?.by.views.includes(view) === true && uidOf(deletion.entry) === metadata.uid;
    return isOwn ? deletion.by : undefined;
  }

  /** Forgets a deletion that the watch brought. */
  delete(key: ObjectKey, uid: string | undefined): void {
    if (uidOf(this.#deletions.get(key)?.entry) === uid) this.#deletions.delete(key);
  }

  /** Returns the last states of what a watch at `version` will not bring as deleted; without a version all of them. */
  passedBy(version: string | undefined, observed: ReadonlyMap<ObjectKey, DecodedResource>): KubernetesObject[] {
    return [...this.#deletions].flatMap(([key, { entry }]) => {
      const isExpected = version !== undefined && isNewerVersion(versionOf(entry), version);
      const isObserved = version !== undefined && uidOf(observed.get(key)) === uidOf(entry);
      return isExpected || isObserved ? [] : [entry.object];
    });
  }
}

// Events that change places are close to each other.
const MAX_OBSERVED_DELETIONS = 1000;

/** The latest deletions that a watch brought, so that an older state that comes after one of them is known as such. */
class ObservedDeletions {
  readonly #versions = new Map<ObjectKey, string>();

  add(key: ObjectKey, version: string): void {
    this.#versions.delete(key);
    this.#versions.set(key, version);
    if (this.#versions.size <= MAX_OBSERVED_DELETIONS) return;
    for (const oldest of this.#versions.keys()) return void this.#versions.delete(oldest);
  }

  /** Tells whether an object was deleted at this version or later. */
  covers(key: ObjectKey, version: string): boolean {
    const deleted = this.#versions.get(key);
    return deleted !== undefined && !isNewerVersion(version, deleted);
  }

  /** Forgets all: the server was restored, and its versions begin anew. */
  clear(): void {
    this.#versions.clear();
  }
}

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
class ObjectIndexes {
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
