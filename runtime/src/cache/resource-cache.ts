// The objects of one list-watch, overlaid with pending writes: responses to the operator's own writes (TemporaryResourceCache in JOSDK). Guarantees
// that a write is visible to the next read, that an older state never replaces a newer one, and that a deleted object does not reappear. Listeners
// are notified of everything that the watch delivers; an object that was re-created while no watch was running is reported as deleted and added. Each
// listener filters its own writes itself (see OwnEvents in resource-view.ts). Indexes find objects by values that a function computes from them, like
// client-go's Indexer.
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
  /** The state after the change, or the last known state of a deleted object. */
  readonly object: KubernetesObject;
  /** The fields that controllers of the operator have applied to the object in this state. */
  readonly owned?: readonly OwnedFields[] | undefined;
  /** The previous state, as delivered by the watch. Absent for an added object. */
  readonly old?: KubernetesObject | undefined;
  /** The latest write by a field manager of the operator, if the watch delivered the change. */
  readonly written?: ManagedWrite | undefined;
  /** Whether a list found the change, not a watch event. */
  readonly isInitial: boolean;
  /**
   * The primary whose reconcile made the whole change, so that it needs no event. Absent if another client or another reconcile contributed to it.
   */
  readonly madeFor?: ObjectKey | undefined;
  /** Whether no watch was running when the object was deleted, so that `object` may not be its last state. */
  readonly isFinalStateUnknown?: boolean;
}

/** Returns the event of a deletion that no watch delivered, with the last known state of the object. */
export function unseenDeletionOf(object: KubernetesObject, isInitial = true): ResourceChange {
  return { kind: "deleted", key: keyOf(object.metadata), object, old: object, isInitial, isFinalStateUnknown: true };
}

/** Notified of changes of the cache, synchronously. */
interface CacheListener {
  /** `version` is the resourceVersion of the event. */
  onChange(change: ResourceChange, version: string): void;
  /** The watch has reached `version`, according to a bookmark or a list. */
  onVersion(version: string): void;
  /** etcd was restored from a backup: events of own writes will not arrive. */
  onReset(): void;
}

interface ResourceCacheOptions {
  readonly comparesVersions?: boolean;
  /** Limits the number of whole objects. Default: no limit */
  readonly bound?: CacheBound | undefined;
  /** Returns whether the cache may be newer than the API server, because etcd was restored from a backup. Default: false */
  readonly isServerOutdated?: (() => boolean) | undefined;
}

/** The objects of one list-watch, by key and by index. Returned objects are frozen and shared by all readers. */
export class ResourceCache {
  /** Whether resourceVersions of this kind can be compared. If not, a write is not visible until the watch delivers it. */
  readonly comparesVersions: boolean;
  readonly #observed = new Map<ObjectKey, DecodedResource>();
  /** The states that the watch has delivered and the copies of evicted objects, without pending writes. */
  readonly observed: ReadonlyMap<ObjectKey, DecodedResource> = this.#observed;
  /** Tracks which objects are whole; absent if all are. */
  readonly bounded: BoundedObjects | undefined;
  readonly #isServerOutdated: () => boolean;
  /** The newest responses to own writes, oldest first, until the watch reaches their resourceVersions. */
  readonly #pending = new Map<ObjectKey, DecodedResource>();
  readonly ownDeletions = new OwnDeletions();
  readonly #observedDeletions = new ObservedDeletions();
  readonly #indexes = new ObjectIndexes();
  readonly #listeners = new Set<CacheListener>();
  /** The resourceVersion that the watch has reached. */
  observedVersion = "0";
  /** The cached objects that the list in progress has not delivered yet; absent if no list is in progress. */
  #unlisted: Set<ObjectKey> | undefined;
  /** Whether the list in progress is from a restored server, so that it replaces newer states. */
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

  /** Whether the API server was restored and has not been listed again yet. No write may be computed from this cache. */
  get isOutdated(): boolean {
    return this.#isReplacing || this.#isServerOutdated();
  }

  /** Returns the sizes of the internal tables, for leak tests. */
  get counts(): { observed: number; pending: number; ownDeletions: number; indexed: number; held: number } {
    const [observed, pending, ownDeletions] = [this.#observed.size, this.#pending.size, this.ownDeletions.size];
    return { observed, pending, ownDeletions, indexed: this.#indexes.size, held: this.bounded?.held ?? 0 };
  }

  /** Returns an object, or undefined if it is evicted or not cached. */
  get(key: ObjectKey): DecodedResource | undefined {
    const entry = this.peek(key);
    if (entry === undefined || this.#isEvicted(entry)) return undefined;
    this.bounded?.touch(key);
    return entry;
  }

  /** Returns an object, or the copy that remains of an evicted one. */
  peek(key: ObjectKey): DecodedResource | undefined {
    const entry = this.#find(key);
    if (entry !== undefined) deepFreeze(entry.object);
    return entry;
  }

  /** Returns whether an object is cached, whole or evicted. */
  has(key: ObjectKey): boolean {
    return this.#find(key) !== undefined;
  }

  *keys(): IterableIterator<ObjectKey> {
    for (const key of this.#observed.keys()) if (this.ownDeletions.size === 0 || this.has(key)) yield key;
    for (const key of this.#pending.keys()) if (!this.#observed.has(key)) yield key;
  }

  /** Returns an object in this resourceVersion, if it is cached or pending. */
  getVersion(key: ObjectKey, version: string): DecodedResource | undefined {
    const known = [this.#pending.get(key), this.#observed.get(key)];
    return known.find((entry) => entry && versionOf(entry) === version && !this.#isEvicted(entry));
  }

  /**
   * Indexes the objects by the values that a function returns. Calls are counted: the index is dropped when it has been removed as often as added.
   */
  addIndex(valuesOf: IndexFunction, report?: IndexReporter): void {
    const index = this.#indexes.add(valuesOf, report);
    if (index !== undefined) for (const key of this.keys()) index.update(key, undefined, this.#find(key)!.object);
  }

  removeIndex(valuesOf: IndexFunction): void {
    this.#indexes.remove(valuesOf);
  }

  /** Returns the index of a function, or undefined if there is none. */
  indexOf(valuesOf: IndexFunction | undefined): ObjectIndex | undefined {
    return this.#indexes.get(valuesOf);
  }

  /**
   * Adds a state from the watch, or from the list in progress, unless a newer one is cached. Notifies the listeners. `written` is the latest write of
   * the field managers and is not stored.
   */
  observe(entry: DecodedResource, written?: ManagedWrite): void {
    const { object, owned } = entry;
    const key = keyOf(object.metadata);
    const version = versionOf(entry);
    const isInitial = this.#unlisted !== undefined;
    this.#unlisted?.delete(key);
    const known = this.#observed.get(key);
    // A watch may deliver a deletion out of order. Do not add the object again for an older event.
    if (known === undefined && !isInitial && this.#observedDeletions.covers(key, version))
      return this.#advance(version);
    if (known === undefined || this.#isReplacing || this.#isNews(version, versionOf(known))) {
      this.take(key, entry);
      const isAnother = known !== undefined && uidOf(known) !== uidOf(entry);
      if (isAnother) this.#notify(unseenDeletionOf(known.object, isInitial), versionOf(known));
      const old = isAnother ? undefined : known?.object;
      // After a restore, generations have gone back together with the resourceVersions. An update event would be filtered out.
      const kind = old === undefined || this.#isReplacing ? "added" : "updated";
      this.#notify({ kind, key, object, owned, old, isInitial, ...(written && { written }) }, version);
    }
    if (!isInitial) this.#advance(version);
  }

  /** Whether the watch has yet to deliver a pending write. */
  get expectsOwn(): boolean {
    return this.#pending.size > 0;
  }

  /**
   * Removes an object that the watch reports as deleted, also during a list. `object` is the last state, with the resourceVersion of the deletion if
   * known.
   */
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

  /** Advances to the resourceVersion of a bookmark. */
  observeVersion(version: string): void {
    this.#advance(version);
    // If the watch has passed the state of an object without delivering it, it will not deliver the deletion either.
    for (const { metadata } of this.ownDeletions.passedBy(version, this.#observed))
      this.ownDeletions.delete(keyOf(metadata), metadata.uid);
    for (const listener of this.#listeners) listener.onVersion(version);
  }

  /**
   * Starts a list, which endReplace() completes. Discards an unfinished one. If the server `isRestored`, its objects replace all cached ones, even
   * newer ones, and own writes and deletions that the watch has not delivered are dropped, because they may have been lost.
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

  /** Marks a listed object as unchanged. Returns false if this resourceVersion is not cached, so that the object must be decoded. */
  observeKnown(key: ObjectKey, version: string): boolean {
    const known = this.#observed.get(key);
    if (known === undefined || versionOf(known) !== version || this.#isReplacing) return false;
    this.#unlisted?.delete(key);
    return true;
  }

  /** Completes the list, whose resourceVersion is `version`. Cached objects that it does not contain were deleted while no watch was running. */
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

  /** Adds the response to an own write as pending, unless the watch has already reached its resourceVersion. */
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

  /** Hides an object that the controller with the views `by` has deleted, until the watch delivers the deletion. */
  removeOwn(key: ObjectKey, uid: string, by: Deleter): void {
    if (!this.comparesVersions || this.#isReplacing) return;
    const answer = this.#pending.get(key);
    const known = uidOf(answer) === uid ? answer : this.#observed.get(key);
    // The object may have been re-created since then, or even deleted again.
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
    // A list may contain a newer state than the response, which is dropped when the list is complete.
    if (answer !== undefined && (entry === undefined || isNewerVersion(versionOf(answer), versionOf(entry))))
      return answer;
    return entry === undefined || this.ownDeletions.covers(key, entry) ? undefined : entry;
  }

  /** Replaces an older state, or the copy of an evicted object, with a whole object. Does not notify listeners. */
  take(key: ObjectKey, entry: DecodedResource): void {
    this.#change(key, () => {
      this.#observed.set(key, entry);
      this.bounded?.add(key);
    });
  }

  /** Replaces an object with its copy. Does not notify listeners. */
  evict(key: ObjectKey): void {
    const { object } = this.#observed.get(key)!;
    const copy = createEvictedCopy(object);
    this.#observed.set(key, { object: copy });
    // The copy lacks the fields from which the index values were computed.
    for (const index of this.#indexes) index.remember(copy, object);
  }

  #delete(object: KubernetesObject, version?: string, { isUnseen = false } = {}): void {
    const key = keyOf(object.metadata);
    const known = this.#observed.get(key);
    const answer = this.#pending.get(key);
    // A deletion without a watch event has no resourceVersion of its own; that of the first list without the object is an upper bound. A pending
    // write to a re-created object is about another object, which gets an event of its own.
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
    // If the selector no longer matches the object, the watch passes the pending write without delivering it.
    for (const [key, answer] of this.#pending) {
      if (isNewerVersion(versionOf(answer), version)) return;
      this.#change(key, () => this.#pending.delete(key));
    }
  }

  /**
   * Drops own deletions and writes that a watch at `version` will not deliver, or all of them if it is undefined. Objects known only from these are
   * reported as deleted.
   */
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
    // Not earlier: listeners look up by whom the object was deleted.
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

/** The controller that deleted an object, identified by its views, and the primary whose reconcile deleted it. */
interface Deleter {
  /** Compared by identity. */
  readonly views: readonly object[];
  readonly madeFor?: ObjectKey | undefined;
}

/** Own deletions by key, until the watch delivers them. */
class OwnDeletions {
  /** With the last known state. All states up to its resourceVersion are obsolete. */
  readonly #deletions = new Map<ObjectKey, { readonly entry: DecodedResource; readonly by: Deleter }>();

  get size(): number {
    return this.#deletions.size;
  }

  /** Records that a controller deleted an object with the last known state `entry`. */
  set(key: ObjectKey, entry: DecodedResource, by: Deleter): void {
    this.#deletions.set(key, { entry, by });
  }

  /** Returns whether a state belongs to a deleted object or is older than the deletion. */
  covers(key: ObjectKey, entry: DecodedResource): boolean {
    const deleted = this.#deletions.get(key)?.entry;
    if (deleted === undefined) return false;
    return uidOf(deleted) === uidOf(entry) || !isNewerVersion(versionOf(entry), versionOf(deleted));
  }

  /** Returns who deleted an object, if it was the controller of a view and the watch has not delivered the deletion yet. */
  changeOf(key: ObjectKey, { metadata }: KubernetesObject, view: object): Deleter | undefined {
    const deletion = this.#deletions.get(key);
    const isOwn = deletion?.by.views.includes(view) === true && uidOf(deletion.entry) === metadata.uid;
    return isOwn ? deletion.by : undefined;
  }

  /** Drops a deletion that the watch has delivered. */
  delete(key: ObjectKey, uid: string | undefined): void {
    if (uidOf(this.#deletions.get(key)?.entry) === uid) this.#deletions.delete(key);
  }

  /** Returns the last states of deleted objects whose deletion a watch at `version` will not deliver, or all of them if it is undefined. */
  passedBy(version: string | undefined, observed: ReadonlyMap<ObjectKey, DecodedResource>): KubernetesObject[] {
    return [...this.#deletions].flatMap(([key, { entry }]) => {
      const isExpected = version !== undefined && isNewerVersion(versionOf(entry), version);
      const isObserved = version !== undefined && uidOf(observed.get(key)) === uidOf(entry);
      return isExpected || isObserved ? [] : [entry.object];
    });
  }
}

// Events that arrive out of order are close together.
const MAX_OBSERVED_DELETIONS = 1000;

/** The latest deletions that the watch has delivered, to recognize an older state that arrives after them. */
class ObservedDeletions {
  readonly #versions = new Map<ObjectKey, string>();

  add(key: ObjectKey, version: string): void {
    this.#versions.delete(key);
    this.#versions.set(key, version);
    if (this.#versions.size <= MAX_OBSERVED_DELETIONS) return;
    for (const oldest of this.#versions.keys()) return void this.#versions.delete(oldest);
  }

  /** Returns whether an object was deleted at this resourceVersion or later. */
  covers(key: ObjectKey, version: string): boolean {
    const deleted = this.#versions.get(key);
    return deleted !== undefined && !isNewerVersion(version, deleted);
  }

  /** Drops all deletions: etcd was restored, so its resourceVersions start from an earlier value. */
  clear(): void {
    this.#versions.clear();
  }
}

/** Returns the values under which an index contains an object. If it throws, the object is not indexed. */
export type IndexFunction = (object: KubernetesObject) => readonly string[];

/** Called if an index function fails for an object, which is then not indexed. Called without `error` when it succeeds again. */
export type IndexReporter = (key: ObjectKey, error?: unknown) => void;

const ofRuntime = new WeakSet<IndexFunction>();

/** Marks an index function of the runtime. Such functions are not measured as user calls, because they run for every object. */
export function unmeasured(valuesOf: IndexFunction): IndexFunction {
  ofRuntime.add(valuesOf);
  return valuesOf;
}

/** Finds the keys of objects by values that an index function returns for them. */
export class ObjectIndex {
  /** The number of readers that share the index. */
  users = 1;
  readonly #valuesOf: IndexFunction;
  readonly #report: IndexReporter | undefined;
  /** The objects for which the function failed. */
  readonly #failed = new Set<ObjectKey>();
  readonly #keys = new Map<string, Set<ObjectKey>>();
  /** The values of evicted objects, by copy. */
  readonly #remembered = new WeakMap<KubernetesObject, readonly string[]>();

  constructor(valuesOf: IndexFunction, report?: IndexReporter) {
    this.#valuesOf = valuesOf;
    this.#report = report;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** The values that occur in the index. */
  get values(): Iterable<string> {
    return this.#keys.keys();
  }

  keysOf(value: string): ReadonlySet<ObjectKey> | undefined {
    return this.#keys.get(value);
  }

  /** Returns the values of an object. If the function fails, calls `onFailure` and returns no values. */
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

  /** Stores the values of an evicted object for its copy. */
  remember(copy: KubernetesObject, whole: KubernetesObject): void {
    this.#remembered.set(copy, this.valuesOf(whole));
  }

  /** Replaces a state of an object; a state is undefined if the object did not or does not exist. */
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
    // The usual case. Also, a Map whose entries are removed and added frequently becomes slow to read.
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

/** The indexes of one cache, by index function. Readers with the same function share an index. */
class ObjectIndexes {
  readonly #indexes = new Map<IndexFunction, ObjectIndex>();

  /** The total number of values in all indexes. */
  get size(): number {
    return [...this].reduce((sum, { size }) => sum + size, 0);
  }

  [Symbol.iterator](): Iterator<ObjectIndex> {
    return this.#indexes.values();
  }

  get(valuesOf: IndexFunction | undefined): ObjectIndex | undefined {
    return valuesOf && this.#indexes.get(valuesOf);
  }

  /** Adds a user of an index. Returns the index if it is new and must be filled. */
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
