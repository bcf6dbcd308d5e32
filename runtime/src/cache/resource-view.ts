// What one controller sees of a kind. The caches behind it are shared by all controllers of the operator; which changes are its own, and
// whom to tell of the others, is known here.
//
// A write of one controller is seen by the next read of any other, which is told of it by the watch; only the writer is not.
import { keyOf, refOfKey, type KubernetesObject, type ObjectKey, describeObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { IndexFunction, IndexReporter } from "./object-index.js";
import { OwnEvents } from "./own-events.js";
import type { LoadOptions, ResourceCache } from "./resource-cache.js";
import type { CacheListener, ResourceChange } from "./resource-change.js";

/** Which objects of a view are wanted. */
export interface ListOptions {
  readonly namespace?: string | undefined;
  readonly where?: (object: DecodedResource["object"]) => boolean;
}

/** What users read of the objects of one kind that are watched. */
export interface ReadonlyCache<Resource extends KubernetesObject = KubernetesObject> {
  /** Returns an object; undefined if it is not known, or was evicted from a bounded cache. */
  get(key: ObjectKey): { readonly object: Resource } | undefined;
  /** Returns the objects of a namespace, or of all, that fulfil a condition; evicted ones are left out. */
  list(options?: ListOptions): readonly { readonly object: Resource }[];
  /** Returns the objects for which the function of an index gave `value`. */
  byIndex(name: string, value: string): readonly { readonly object: Resource }[];
}

/** A cache of which a view shows the objects, with what the view knows of them. */
interface Attachment {
  readonly cache: ResourceCache;
  readonly ownEvents: OwnEvents;
  readonly unsubscribe: () => void;
}

/** What a view is of. */
export interface ResourceViewOptions {
  /** Whether the caches have only a part of each object, so that nothing can be compared with it. */
  readonly isPartial?: boolean;
  /** Told that an index failed for an object, or no longer does. */
  readonly onIndexFailure?: (index: string, key: ObjectKey, error?: unknown) => void;
}

// No namespace has this name.
const ALL = "";
const NONE: ReadonlySet<ObjectKey> = new Set();

/** The objects of one kind as one controller sees them, from one cache for all namespaces or one for each. */
export class ResourceView implements ReadonlyCache {
  readonly definition: ResourceDefinition;
  /** Whether only a part of each object is known: then nothing can be written through this view. */
  readonly isPartial: boolean;
  readonly #attachments = new Map<string, Attachment>();
  readonly #indexes = new Map<string, IndexFunction>();
  readonly #onIndexFailure: ResourceViewOptions["onIndexFailure"];
  readonly #listeners = new Set<(change: ResourceChange) => void>();
  /** Whose own writes and deletions are not told to it. */
  #owner: object = this;
  #siblings: () => Iterable<ResourceView> = () => [];
  /** The siblings that know of each write under way. */
  readonly #writeSiblings = new Map<ObjectKey, (readonly ResourceView[])[]>();

  constructor(
    definition: ResourceDefinition,
    indexes: { readonly [name: string]: IndexFunction } = {},
    { isPartial = false, onIndexFailure }: ResourceViewOptions = {},
  ) {
    this.definition = definition;
    this.isPartial = isPartial;
    this.#onIndexFailure = onIndexFailure;
    for (const [name, valuesOf] of Object.entries(indexes)) this.#indexes.set(name, valuesOf);
  }

  /**
   * Shows the objects of a cache: those of one namespace, or of all if none is given. What the cache knows already is told to the
   * listeners as added.
   */
  attach(cache: ResourceCache, namespace: string = ALL): void {
    if (this.#attachments.has(namespace))
      throw new Error(`the cache of ${this.#describe(namespace)} is attached already`);
    const ownEvents = new OwnEvents();
    ownEvents.setListing(cache.isListing);
    const unsubscribe = cache.subscribe(this.#listenerOf(cache, ownEvents));
    this.#attachments.set(namespace, { cache, ownEvents, unsubscribe });
    for (const [name, valuesOf] of this.#indexes) cache.addIndex(valuesOf, this.#reporterOf(name));
    for (const [key, { object }] of cache.observed()) this.#tell({ kind: "added", key, object, isInitial: true });
  }

  /**
   * Shows the objects of a namespace, or of all, no longer; nobody is told, and own writes of them are forgotten. Returns the changes that
   * were held back for those.
   */
  detach(namespace: string = ALL): readonly ResourceChange[] {
    const attachment = this.#attachments.get(namespace);
    if (attachment === undefined) return [];
    this.#attachments.delete(namespace);
    attachment.unsubscribe();
    for (const valuesOf of this.#indexes.values()) attachment.cache.removeIndex(valuesOf);
    return attachment.ownEvents.drain();
  }

  /** Detaches everything. */
  clear(): void {
    for (const namespace of [...this.#attachments.keys()]) this.detach(namespace);
  }

  /** Calls `listener` for every change that is not our own; returns how to end that. */
  onChange(listener: (change: ResourceChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** How many objects are known. */
  get size(): number {
    let size = 0;
    for (const _key of this.keys()) size++;
    return size;
  }

  /** How many objects have own writes under way or not echoed yet. */
  get ownWrites(): number {
    let count = 0;
    for (const { ownEvents } of this.#attachments.values()) count += ownEvents.size;
    return count;
  }

  /** Returns an object; undefined if it is not known, or had to make room in a bounded cache. */
  get(key: ObjectKey): DecodedResource | undefined {
    return this.#attachmentOf(key)?.cache.get(key);
  }

  /** Returns an object, or what is left of one that had to make room. */
  peek(key: ObjectKey): DecodedResource | undefined {
    return this.#attachmentOf(key)?.cache.peek(key);
  }

  /** Tells whether an object is known. */
  has(key: ObjectKey): boolean {
    return this.#attachmentOf(key)?.cache.has(key) ?? false;
  }

  *keys(): IterableIterator<ObjectKey> {
    for (const { cache } of this.#attachments.values()) yield* cache.keys();
  }

  /** Returns the objects of a namespace, or of all, that fulfil a condition; those that had to make room are left out. */
  list({ namespace, where }: ListOptions = {}): DecodedResource[] {
    const found: DecodedResource[] = [];
    for (const key of this.#keysIn(namespace)) {
      if (namespace !== undefined && namespaceOf(key) !== namespace) continue;
      const entry = this.get(key);
      if (entry !== undefined && (where === undefined || where(entry.object))) found.push(entry);
    }
    return found;
  }

  /** Adds an index, over what is known and what will be; another function under the same name replaces the one before. */
  addIndex(name: string, valuesOf: IndexFunction): void {
    const before = this.#indexes.get(name);
    this.#indexes.set(name, valuesOf);
    for (const { cache } of this.#attachments.values()) {
      cache.addIndex(valuesOf, this.#reporterOf(name));
      if (before !== undefined) cache.removeIndex(before);
    }
  }

  /** Forgets an index. */
  removeIndex(name: string): void {
    const valuesOf = this.#indexes.get(name);
    if (valuesOf === undefined) return;
    this.#indexes.delete(name);
    for (const { cache } of this.#attachments.values()) cache.removeIndex(valuesOf);
  }

  /** Returns the keys of the objects for which the index function gave `value`. */
  keysByIndex(name: string, value: string): ReadonlySet<ObjectKey> {
    const valuesOf = this.#indexes.get(name);
    if (valuesOf === undefined) return NONE;
    let found = NONE;
    for (const { cache } of this.#attachments.values()) {
      const keys = cache.keysByIndex(valuesOf, value);
      if (keys.size > 0) found = found.size === 0 ? keys : new Set([...found, ...keys]);
    }
    return found;
  }

  /** Returns the objects for which the index function gave `value`. */
  byIndex(name: string, value: string): DecodedResource[] {
    return [...this.keysByIndex(name, value)].flatMap((key) => this.get(key) ?? []);
  }

  /** Returns the entry of an object if it is known in this version. */
  getVersion(key: ObjectKey, version: string): DecodedResource | undefined {
    return this.#attachmentOf(key)?.cache.getVersion(key, version);
  }

  /** Returns the values for which an index has an object, or one that this is what is left of. */
  indexValuesOf(name: string, key: ObjectKey, object: KubernetesObject): readonly string[] | undefined {
    const valuesOf = this.#indexes.get(name);
    return valuesOf && this.#attachmentOf(key)?.cache.indexValuesOf(valuesOf, object);
  }

  /** Makes sure that these objects can be read; those that had to make room are fetched. */
  async load(keys: Iterable<ObjectKey>, options: LoadOptions = {}): Promise<void> {
    const wanted = new Map<ResourceCache, ObjectKey[]>();
    for (const key of keys) {
      const cache = this.#attachmentOf(key)?.cache;
      const some = cache && wanted.get(cache);
      if (some !== undefined) some.push(key);
      else if (cache !== undefined) wanted.set(cache, [key]);
    }
    await Promise.all([...wanted].map(([cache, some]) => cache.load(some, options)));
  }

  /** Lets the objects that were loaded for `holder` make room again. */
  release(holder: string): void {
    for (const { cache } of this.#attachments.values()) cache.release(holder);
  }

  /** Has the indexes of this view kept over a cache that will be attached; returns how to end that. */
  addIndexesTo(cache: ResourceCache): () => void {
    const added = [...this.#indexes];
    for (const [name, valuesOf] of added) cache.addIndex(valuesOf, this.#reporterOf(name));
    return () => {
      for (const [, valuesOf] of added) cache.removeIndex(valuesOf);
    };
  }

  /**
   * Throws if an object of this view cannot be written: because only a part of it is known, with which a write would be compared, or
   * because what is known is newer than the state of the server, which was restored.
   */
  requireWhole(key: ObjectKey): void {
    const isOutdated = this.#attachmentOf(key)?.cache.isOutdated === true;
    if (!this.isPartial && !isOutdated) return;
    const object = describeObject(this.definition, refOfKey(key));
    if (isOutdated)
      throw new Error(
        `${object} cannot be written now: the store of the API server was restored to an older state, which is being read; try again`,
      );
    throw new Error(
      `${object} cannot be written: the event source that watches it keeps only a part of each object; give the source the form ` +
        '"full", or write through another source',
    );
  }

  /**
   * States whose view this is, and in which others the same owner sees objects of the same cluster and kind: what is written and deleted
   * through this one is its own there, too.
   */
  setOwner(owner: object, siblings: () => Iterable<ResourceView>): void {
    this.#owner = owner;
    this.#siblings = siblings;
  }

  /** Announces a write; until `endWrite`, changes of this object are held back. */
  beginWrite(key: ObjectKey): void {
    this.requireWhole(key);
    const siblings = [...this.#siblings()];
    if (siblings.length > 0) this.#writeSiblings.set(key, [...(this.#writeSiblings.get(key) ?? []), siblings]);
    for (const view of [this, ...siblings]) view.#openWindow(key);
  }

  /**
   * Ends a write, also one that failed. `entry` is the answer, which the next read sees; `isOwn` tells whether its version is proven to
   * be the one that the write made: a write that changes nothing answers with the version of a change that may still be on its way.
   */
  endWrite(key: ObjectKey, written?: { readonly entry: DecodedResource; readonly isOwn: boolean }): void {
    const ownVersion = written?.isOwn === true ? written.entry.object.metadata.resourceVersion : undefined;
    if (written !== undefined) this.put(written.entry);
    for (const view of [this, ...this.#takeSiblings(key)]) view.#closeWindow(key, ownVersion);
  }

  /** Takes the answer to a write, which the next read sees; its event is told like any other. */
  put(entry: DecodedResource): void {
    this.#attachmentOf(keyOf(entry.object.metadata))?.cache.put(entry);
  }

  /**
   * Announces our own deletion of an object; until it has ended, the event of it is held back. Returns how to end it, also one that failed:
   * `isGone` says that the object is gone by it, which the next read sees and our listeners are not told.
   */
  beginDeletion(key: ObjectKey, uid: string): (ended: { readonly isGone: boolean }) => void {
    const held = [this, ...this.#siblings()].flatMap((view) => {
      const attachment = view.#attachmentOf(key);
      if (attachment?.cache.comparesVersions !== true) return [];
      attachment.ownEvents.openDeletion(uid);
      return [{ view, ownEvents: attachment.ownEvents }];
    });
    return ({ isGone }) => {
      const views = isGone ? [this, ...this.#siblings()] : [];
      for (const view of views) view.#attachmentOf(key)?.cache.removeOwn(key, uid, this.#owner);
      for (const { view, ownEvents } of held) {
        const change = ownEvents.closeDeletion(uid, { isGone });
        if (change !== undefined) view.#tell(change);
      }
    };
  }

  #openWindow(key: ObjectKey): void {
    const attachment = this.#attachmentOf(key);
    if (attachment?.cache.comparesVersions === true) attachment.ownEvents.open(key);
  }

  #closeWindow(key: ObjectKey, ownVersion: string | undefined): void {
    const attachment = this.#attachmentOf(key);
    if (attachment === undefined) return;
    const { cache, ownEvents } = attachment;
    if (ownVersion !== undefined) ownEvents.recordOwn(key, ownVersion);
    const change = ownEvents.close(key, cache.observedVersion);
    if (change !== undefined) this.#tell(change);
  }

  // Those of one of the writes under way: which of them does not matter, for a view counts them.
  #takeSiblings(key: ObjectKey): readonly ResourceView[] {
    const writes = this.#writeSiblings.get(key);
    const siblings = writes?.pop() ?? [];
    if (writes?.length === 0) this.#writeSiblings.delete(key);
    return siblings;
  }

  #listenerOf(cache: ResourceCache, ownEvents: OwnEvents): CacheListener {
    // Whatever happened to an object that we deleted concerns us no more.
    const isOwnDeletion = ({ object }: ResourceChange) => cache.isDeletedBy(object, this.#owner);
    return {
      onChange: (change, version) => {
        if (isOwnDeletion(change)) return ownEvents.forget(change.key, version);
        if (ownEvents.holds(change, version)) return;
        const before = ownEvents.release(change.key);
        if (before !== undefined) this.#tell(before);
        const rest = ownEvents.filter(change, version);
        if (rest !== undefined) this.#tell(rest);
      },
      onListing: (isListing) => ownEvents.setListing(isListing),
      onVersion: (version) => {
        for (const change of ownEvents.passTo(version)) this.#tell(change);
      },
      onReset: () => {
        for (const change of ownEvents.drain()) this.#tell(change);
      },
    };
  }

  #reporterOf(name: string): IndexReporter {
    return (key, ...error) => this.#onIndexFailure?.(name, key, ...error);
  }

  #tell(change: ResourceChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  #attachmentOf(key: ObjectKey): Attachment | undefined {
    return this.#attachments.get(ALL) ?? this.#attachments.get(namespaceOf(key));
  }

  #keysIn(namespace: string | undefined): Iterable<ObjectKey> {
    const attachment = namespace === undefined ? undefined : this.#attachments.get(namespace);
    return attachment === undefined ? this.keys() : attachment.cache.keys();
  }

  #describe(namespace: string): string {
    return `${this.definition.plural} in ${namespace === ALL ? "all namespaces" : `namespace "${namespace}"`}`;
  }
}

function namespaceOf(key: ObjectKey): string {
  const slash = key.indexOf("/");
  return slash === -1 ? ALL : key.slice(0, slash);
}
