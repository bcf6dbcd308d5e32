// What one list-watch knows of the objects of a kind, overlaid with the answers to own writes (JOSDK TemporaryResourceCache).
//
// Promises: a write is visible to the next read; an older state never replaces a newer one; an object that is gone does not come back.
// Listeners are told what the watch brings, as it brings it: whose change it is, each of them knows for itself (see own-events.ts).
import { keyOf, type KubernetesObject, type ObjectKey, isNewerVersion } from "../base/kubernetes-object.js";
import { BoundedEntries, BoundedLoader, type CacheBound, isEvicted, type LoadOptions } from "./bounded-entries.js";
import { uidOf, versionOf, type DecodedResource } from "../decode/decode-resource.js";
import { deepFreeze } from "../decode/deep-freeze.js";
import { SharedIndexes, type IndexFunction, type IndexReporter } from "./object-index.js";
import { OwnDeletions, PendingWrites, type KeyedObject } from "./pending-writes.js";
import { arrivalOf, deletionOf, type CacheListener, type ResourceChange } from "./resource-change.js";

export type { LoadOptions } from "./bounded-entries.js";
export type { ResourceChange } from "./resource-change.js";

/** What a cache is to know of its objects. */
export interface ResourceCacheOptions {
  /** Whether versions of this kind can be compared; true unless given. */
  readonly comparesVersions?: boolean;
  /** How many objects are kept whole; all of them unless given. */
  readonly bound?: CacheBound | undefined;
  /** Tells whether what is known of any kind of the server may be newer than the server, because it was restored. */
  readonly isServerOutdated?: (() => boolean) | undefined;
}

/** The whole state that is being read. */
interface Listing {
  /** What is known and was not seen in it. */
  readonly unlisted: Set<ObjectKey>;
  /** Whether it is older than what is known, and the truth. */
  readonly isRestored: boolean;
}

/** The objects that one list-watch follows, by key and by index; what it returns is frozen and shared by all readers. */
export class ResourceCache {
  /** Whether versions of this kind can be compared; if not, nothing is known before the watch brings it. */
  readonly comparesVersions: boolean;
  /** What the watch brought. */
  readonly #observed: Map<ObjectKey, DecodedResource> | BoundedEntries;
  /** The same, if it is bounded. */
  readonly #bounded: BoundedEntries | undefined;
  readonly #loader: BoundedLoader | undefined;
  readonly #isServerOutdated: () => boolean;
  readonly #pending = new PendingWrites();
  readonly #ownDeletions = new OwnDeletions();
  readonly #indexes = new SharedIndexes();
  readonly #listeners = new Set<CacheListener>();
  #observedVersion = "0";
  #listing: Listing | undefined;

  constructor({ comparesVersions = true, bound, isServerOutdated = () => false }: ResourceCacheOptions = {}) {
    this.comparesVersions = comparesVersions;
    this.#isServerOutdated = isServerOutdated;
    // What is left of an object does not tell where an index has it.
    this.#bounded =
      bound && new BoundedEntries(bound.maxObjects, (whole, copy) => this.#indexes.remember(copy.object, whole.object));
    this.#observed = this.#bounded ?? new Map<ObjectKey, DecodedResource>();
    this.#loader =
      bound &&
      new BoundedLoader(this.#bounded!, bound, {
        find: (key) => this.#find(key),
        put: (entry) => this.put(entry),
        complete: (key, entry) => this.#take(key, entry),
      });
  }

  /** Tells `listener` from now on; returns how to end that. */
  subscribe(listener: CacheListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** How far the watch has come. */
  get observedVersion(): string {
    return this.#observedVersion;
  }

  /** Whether the whole state is being read. */
  get isListing(): boolean {
    return this.#listing !== undefined;
  }

  /** Whether the server was restored from a backup, and its state has not been read yet: nothing may be written from what is known. */
  get isOutdated(): boolean {
    return this.#isReplacing || this.#isServerOutdated();
  }

  /** How much is kept, for whoever looks for leaks. */
  get counts(): { observed: number; pending: number; ownDeletions: number; indexed: number; held: number } {
    const [observed, pending, ownDeletions] = [this.#observed.size, this.#pending.size, this.#ownDeletions.size];
    return { observed, pending, ownDeletions, indexed: this.#indexes.size, held: this.#bounded?.held ?? 0 };
  }

  /** Returns an object; undefined if it is not known, or had to make room in a bounded cache. */
  get(key: ObjectKey): DecodedResource | undefined {
    const entry = this.peek(key);
    if (this.#bounded === undefined || entry === undefined) return entry;
    if (isEvicted(entry)) return undefined;
    this.#bounded.touch(key);
    return entry;
  }

  /** Returns an object, or what is left of one that had to make room. */
  peek(key: ObjectKey): DecodedResource | undefined {
    const entry = this.#find(key);
    if (entry !== undefined) deepFreeze(entry.object);
    return entry;
  }

  /** Tells whether an object is known. */
  has(key: ObjectKey): boolean {
    return this.#find(key) !== undefined;
  }

  *keys(): IterableIterator<ObjectKey> {
    for (const key of this.#observed.keys()) if (this.#ownDeletions.size === 0 || this.has(key)) yield key;
    for (const key of this.#pending.keys()) if (!this.#observed.has(key)) yield key;
  }

  /** Returns what the watch brought, without the answers. */
  observed(): Iterable<readonly [ObjectKey, DecodedResource]> {
    return this.#observed;
  }

  /** Returns what the watch brought of an object, or what is left of it, without an answer. */
  observedOf(key: ObjectKey): DecodedResource | undefined {
    return this.#observed.get(key);
  }

  /** Returns the entry of an object if it is known in this version. */
  getVersion(key: ObjectKey, version: string): DecodedResource | undefined {
    const known = [this.#pending.get(key), this.#observed.get(key)];
    return known.find((entry) => entry && versionOf(entry) === version && !isEvicted(entry));
  }

  /** Reads again those of these objects that had to make room. What the watch brings meanwhile is newer, and stays. */
  async load(keys: Iterable<ObjectKey>, options: LoadOptions = {}): Promise<void> {
    await this.#loader?.load(keys, options);
  }

  /** Lets the objects that were loaded for `holder` make room again. */
  release(holder: string): void {
    this.#bounded?.release(holder);
  }

  /** Finds objects by what a function returns for them, from now on; each call needs a `removeIndex`. */
  addIndex(valuesOf: IndexFunction, report?: IndexReporter): void {
    const known = () => [...this.keys()].map((key) => [key, this.#find(key)!.object] as const);
    this.#indexes.acquire(valuesOf, known, report);
  }

  /** Gives an index up; without users it is forgotten. */
  removeIndex(valuesOf: IndexFunction): void {
    this.#indexes.release(valuesOf);
  }

  /** Returns the values for which an index has an object, or one that this is what is left of; undefined without such an index. */
  indexValuesOf(valuesOf: IndexFunction, object: KubernetesObject): readonly string[] | undefined {
    return this.#indexes.valuesOf(valuesOf, object);
  }

  /** Returns the keys of the objects for which the index function gave `value`. */
  keysByIndex(valuesOf: IndexFunction, value: string): ReadonlySet<ObjectKey> {
    return this.#indexes.keysOf(valuesOf, value);
  }

  /** Takes a state that the watch brought. */
  observe(entry: DecodedResource): void {
    this.#observe(entry, false);
    this.#advance(versionOf(entry));
  }

  /** Whether there are answers that the watch has not come to. */
  get expectsOwn(): boolean {
    return this.#pending.size > 0;
  }

  /**
   * Takes the version of a state that the watch is about to bring, before it is decoded; true if it is known already from an answer, so
   * that `observe` need not be called.
   */
  observeOwn(version: string): boolean {
    const answer = this.#pending.ofVersion(version);
    if (answer !== undefined) this.observe(answer);
    return answer !== undefined;
  }

  /** Takes a deletion that the watch brought; `object` is the last state with the version of the deletion, if that is known. */
  observeDeletion(
    object: KubernetesObject,
    { isFinalStateUnknown = false }: { isFinalStateUnknown?: boolean } = {},
  ): void {
    const version = object.metadata.resourceVersion ?? "0";
    this.#delete(object, { version, isInitial: false, isFinalStateUnknown });
    if (!isFinalStateUnknown) this.#advance(version);
  }

  /** Takes how far the watch has come, as bookmarks tell. */
  observeVersion(version: string): void {
    this.#advance(version);
    // A watch that is past an object without having brought it does not bring its deletion either.
    for (const { key, object } of this.#ownDeletions.passedBy(version, this.#observed))
      this.#ownDeletions.delete(key, object.metadata.uid);
    this.#tell((listener) => listener.onVersion(version));
  }

  /**
   * Says that the whole state is being read: it comes object by object, in any order, by `observeListed` and `observeKnown`, and ends with
   * `endReplace`. What began before and did not end counts for nothing.
   *
   * `isRestored` says that the server was restored from a backup: its state is older than what is known, and the truth. So it replaces all
   * that was observed, and all of it is told as initial; own writes and deletions that the watch has not brought may be undone.
   */
  beginReplace({ isRestored = false }: { readonly isRestored?: boolean } = {}): void {
    this.#listing = { unlisted: new Set(this.#observed.keys()), isRestored };
    this.#tell((listener) => listener.onListing(true));
    if (!isRestored) return;
    this.#tell((listener) => listener.onReset());
    this.#forgetOwn(this.#ownDeletions.all(), this.#pending.all(), "0");
    this.#observedVersion = "0";
  }

  /** Takes that the whole state has this object in this version; tells whether that is known, or else it has to be decoded. */
  observeKnown(key: ObjectKey, version: string): boolean {
    const known = this.#observed.get(key);
    if (known === undefined || versionOf(known) !== version || this.#isReplacing) return false;
    this.#listing?.unlisted.delete(key);
    return true;
  }

  /** Takes an object of the whole state. */
  observeListed(entry: DecodedResource): void {
    const key = keyOf(entry.object.metadata);
    this.#listing?.unlisted.delete(key);
    this.#observe(entry, true);
  }

  /** Takes that an object went while the whole state was being read. */
  forgetListed({ metadata }: KubernetesObject): void {
    const key = keyOf(metadata);
    if (this.#observed.has(key)) this.#listing?.unlisted.add(key);
  }

  /** Takes that the whole state as of `version` has been read; what was not in it was deleted while nobody watched. */
  endReplace(version: string): void {
    for (const key of this.#listing!.unlisted) {
      const known = this.#observed.get(key);
      if (known !== undefined) this.#delete(known.object, { version, isInitial: true, isFinalStateUnknown: true });
    }
    this.#forgetOwn(this.#ownDeletions.passedBy(version, this.#observed), this.#pending.allPassedBy(version), version);
    this.#advance(version);
    this.#listing = undefined;
    this.#tell((listener) => {
      listener.onListing(false);
      listener.onVersion(version);
    });
  }

  /** Takes the whole state at once. */
  replace(entries: readonly DecodedResource[], version: string, options: { readonly isRestored?: boolean } = {}): void {
    if (this.#listing === undefined) this.beginReplace(options);
    for (const entry of entries) this.observeListed(entry);
    this.endReplace(version);
  }

  /** Takes the answer to an own write, unless the watch is past it: then it has brought it, and what became of it since. */
  put(entry: DecodedResource): void {
    const key = keyOf(entry.object.metadata);
    const version = versionOf(entry);
    if (!this.comparesVersions || this.#isReplacing || isEvicted(entry)) return;
    if (!isNewerVersion(version, this.#observedVersion)) return;
    if (this.#ownDeletions.covers(key, entry)) return;
    const answer = this.#pending.get(key);
    if (answer !== undefined && !isNewerVersion(version, versionOf(answer))) return;
    this.#change(key, () => this.#pending.set(key, entry));
  }

  /** Takes an own deletion of an object that is gone at once; the watch will bring it. `by` says whose it is. */
  removeOwn(key: ObjectKey, uid: string, by?: object): void {
    if (!this.comparesVersions || this.#isReplacing) return;
    const answer = this.#pending.get(key);
    const known = uidOf(answer) === uid ? answer : this.#observed.get(key);
    // It may have been made anew, and even deleted again.
    if (known === undefined || uidOf(known) !== uid || this.#ownDeletions.covers(key, known)) return;
    this.#change(key, () => {
      this.#ownDeletions.set(key, known, by);
      if (known === answer) this.#pending.delete(key);
    });
  }

  /** Tells whether `by` deleted this object and the watch has not told so yet. */
  isDeletedBy(object: KubernetesObject, by: object): boolean {
    return this.#ownDeletions.size > 0 && this.#ownDeletions.isBy(keyOf(object.metadata), object, by);
  }

  /** Whether the state of a restored server replaces what is known. */
  get #isReplacing(): boolean {
    return this.#listing?.isRestored === true;
  }

  #find(key: ObjectKey): DecodedResource | undefined {
    const answer = this.#pending.get(key);
    if (answer !== undefined) return answer;
    const entry = this.#observed.get(key);
    return entry === undefined || this.#ownDeletions.covers(key, entry) ? undefined : entry;
  }

  /** Takes a state unless a newer one is known. */
  #observe(entry: DecodedResource, isInitial: boolean): void {
    const { object } = entry;
    const key = keyOf(object.metadata);
    const known = this.#observed.get(key);
    if (known !== undefined && !this.#isReplacing && !this.#isNews(versionOf(entry), versionOf(known))) return;
    this.#take(key, entry);
    const change = arrivalOf(key, { object, old: known?.object, isInitial });
    // Generations began anew with the versions, so that the object is told like one that nobody has seen.
    const isSame = this.#isReplacing && uidOf(known) === uidOf(entry);
    this.#tellChange(isSame ? { ...change, kind: "added" } : change, versionOf(entry));
  }

  #take(key: ObjectKey, entry: DecodedResource): void {
    const answer = this.#pending.get(key);
    const isPassed = answer !== undefined && !isNewerVersion(versionOf(answer), versionOf(entry));
    this.#change(key, () => {
      this.#observed.set(key, entry);
      if (isPassed) this.#pending.delete(key);
    });
  }

  #delete(
    object: KubernetesObject,
    deletion: { version: string; isInitial: boolean; isFinalStateUnknown: boolean },
  ): void {
    const { version, isInitial, isFinalStateUnknown } = deletion;
    const key = keyOf(object.metadata);
    const known = this.#observed.get(key);
    const answer = this.#pending.get(key);
    // The version says nothing of when an object went that somebody misses, but that of a list in which it is missing does. What was
    // made anew and is missing, too, is another object, and is told for itself.
    const isPassed = answer !== undefined && !isNewerVersion(versionOf(answer), version);
    const isOther = isInitial && uidOf(answer) !== object.metadata.uid;
    this.#change(key, () => {
      this.#observed.delete(key);
      if ((isPassed && !isOther) || (isFinalStateUnknown && !isInitial)) this.#pending.delete(key);
    });
    const change = deletionOf(key, { object, old: known?.object, isInitial, isFinalStateUnknown });
    this.#tellChange(change, version);
    this.#ownDeletions.delete(key, object.metadata.uid);
  }

  #advance(version: string): void {
    if (!this.#isNews(version, this.#observedVersion)) return;
    this.#observedVersion = version;
    // The watch passes an answer without bringing it if the object is none of those that it follows.
    for (let key; (key = this.#pending.passedBy(version)) !== undefined;) {
      const passed = key;
      this.#change(passed, () => this.#pending.delete(passed));
    }
  }

  /** Forgets own deletions and writes that the watch will not bring; what is known from them alone is told as missing. */
  #forgetOwn(deletions: readonly KeyedObject[], writes: readonly KeyedObject[], version: string): void {
    for (const { key, object } of deletions) {
      // Whose deletion it is has to be known for as long as it is told.
      if (!this.#observed.has(key)) this.#tellMissing(key, object, version);
      this.#change(key, () => this.#ownDeletions.delete(key, object.metadata.uid));
    }
    for (const { key, object } of writes) {
      this.#change(key, () => this.#pending.delete(key));
      if (!this.#observed.has(key)) this.#tellMissing(key, object, version);
    }
  }

  /** Tells that an object is gone that the watch never brought. */
  #tellMissing(key: ObjectKey, object: KubernetesObject, version: string): void {
    this.#tellChange({ kind: "deleted", key, object, isInitial: true, isFinalStateUnknown: true }, version);
  }

  #tellChange(change: ResourceChange, version: string): void {
    for (const listener of this.#listeners) listener.onChange(change, version);
  }

  #tell(tell: (listener: CacheListener) => void): void {
    for (const listener of this.#listeners) tell(listener);
  }

  #isNews(version: string, before: string): boolean {
    return this.comparesVersions ? isNewerVersion(version, before) : version !== before;
  }

  /** Changes what is known of an object, and the indexes with it. */
  #change(key: ObjectKey, change: () => void): void {
    if (this.#indexes.isEmpty) return change();
    const before = this.#find(key)?.object;
    change();
    this.#indexes.update(key, before, this.#find(key)?.object);
  }
}
