// The objects of one kind, as seen by one controller. The underlying caches are shared by all controllers of the operator; the view recognizes which
// changes are own writes, and notifies its listeners of all others. A write of one controller is visible to the next read of any other controller.
// The watch notifies all controllers except the one that wrote.
import { RetryAfterError } from "../base/errors.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  describeObject,
  isNewerVersion,
  keyOf,
  nameOfType,
  refOfKey,
  uidOf,
  versionOf,
} from "../base/kubernetes-object.js";
import { type LoadOptions, isEvicted } from "./bounded-cache.js";
import {
  type IndexFunction,
  type IndexReporter,
  type ObjectIndex,
  type ResourceCache,
  type ResourceChange,
  unseenDeletionOf,
} from "./resource-cache.js";

/** Returns whether an added resource triggers a reconcile. */
export type OnAddFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** Returns whether a change of a resource triggers a reconcile. */
export type OnUpdateFilter<Resource = KubernetesObject> = (resource: Resource, old: Resource) => boolean;

/** Returns whether a deletion triggers a reconcile. `isFinalStateUnknown`: no watch was running when it happened. */
export type OnDeleteFilter<Resource = KubernetesObject> = (resource: Resource, isFinalStateUnknown: boolean) => boolean;

/** Returns whether any event of a resource triggers a reconcile. */
export type GenericFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/**
 * Filters of events: an event triggers a reconcile if `generic` and the filter for its kind return true. Default: no filter. Caches and indexes
 * contain all objects.
 */
export interface EventFilters<Resource = KubernetesObject> {
  readonly onAdd?: OnAddFilter<Resource> | undefined;
  readonly onUpdate?: OnUpdateFilter<Resource> | undefined;
  readonly onDelete?: OnDeleteFilter<Resource> | undefined;
  readonly generic?: GenericFilter<Resource> | undefined;
}

/** Selects objects of a view. */
export interface ListOptions {
  readonly namespace?: string | undefined;
  readonly where?: (object: DecodedResource["object"]) => boolean;
}

/** A cache that is part of a view, with the own events of the view. */
interface Attachment {
  readonly cache: ResourceCache;
  readonly ownEvents: OwnEvents;
  readonly unsubscribe: () => void;
}

/** The response to a write. */
export interface Written {
  readonly entry: DecodedResource;
  /**
   * Whether this version is known to result from the write. If the write changed nothing, it is the version of another client's change, whose event
   * may still arrive.
   */
  readonly isOwn: boolean;
}

interface ResourceViewOptions {
  readonly isPartial?: boolean;
  /** Called if an index function fails for an object, and without `error` when it succeeds again. */
  readonly onIndexFailure?: (index: string, key: ObjectKey, error?: unknown) => void;
}

/** The controller that changes an object, identified by its views that may contain the object, and the primary of the reconcile. */
interface OwnChange {
  readonly views: readonly ResourceView[];
  readonly madeFor?: ObjectKey | undefined;
}

type EndDeletion = (ended: { readonly isGone: boolean }) => void;

const NONE: ReadonlySet<ObjectKey> = new Set();

/** The objects of one kind, as seen by one controller. Backed by one cache for all namespaces or by one per namespace. */
export class ResourceView {
  readonly definition: ResourceDefinition;
  /** Whether the caches keep only a part of each object. Nothing can then be written through this view. */
  readonly isPartial: boolean;
  /** By namespace; the cache of all namespaces has the key undefined. */
  readonly #attachments = new Map<string | undefined, Attachment>();
  /** Whether any cache of the view may evict objects. */
  #isBounded = false;
  readonly #indexes: Map<string, IndexFunction>;
  readonly #onIndexFailure: ResourceViewOptions["onIndexFailure"];
  readonly #listeners = new Set<(change: ResourceChange) => void>();

  constructor(
    definition: ResourceDefinition,
    indexes: { readonly [name: string]: IndexFunction } = {},
    { isPartial = false, onIndexFailure }: ResourceViewOptions = {},
  ) {
    this.definition = definition;
    this.isPartial = isPartial;
    this.#onIndexFailure = onIndexFailure;
    this.#indexes = new Map(Object.entries(indexes));
  }

  /** Adds a cache for one namespace or for all. Objects that are not in `before` are reported to the listeners as added. */
  attach(cache: ResourceCache, namespace?: string, before: ReadonlyMap<ObjectKey, DecodedResource> = new Map()): void {
    const ownEvents = new OwnEvents();
    const unsubscribe = cache.subscribe({
      onChange: (change, version) => {
        // The controller that deleted the object needs no further events for it.
        const own = cache.ownDeletions.changeOf(change.key, change.object, this);
        if (own === undefined) return this.#notify(...ownEvents.take(change, version));
        ownEvents.forget(change.key, version);
        this.#notify(changeMadeFor(change, own.madeFor));
      },
      onVersion: (version) => this.#notify(...ownEvents.passTo(version)),
      onReset: () => this.#notify(...ownEvents.drain()),
    });
    this.#attachments.set(namespace, { cache, ownEvents, unsubscribe });
    this.#isBounded ||= cache.bounded !== undefined;
    this.addIndexesTo(cache);
    for (const [key, entry] of cache.observed) this.#notify(...sinceBefore(key, entry, before.get(key)));
  }

  /** Removes a cache, without notifications, and drops its own writes. Returns the changes that were held because of them. */
  detach(namespace?: string): readonly ResourceChange[] {
    const attachment = this.#attachments.get(namespace);
    if (attachment === undefined) return [];
    this.#attachments.delete(namespace);
    attachment.unsubscribe();
    for (const valuesOf of this.#indexes.values()) attachment.cache.removeIndex(valuesOf);
    return attachment.ownEvents.drain();
  }

  /**
   * Replaces the caches of the view. Listeners are notified of changes since the last known state, but not of objects in namespaces that are no
   * longer watched.
   */
  show(caches: ReadonlyMap<string | undefined, ResourceCache>): void {
    const dropped = [...this.#attachments.keys()].filter((namespace) => !caches.has(namespace));
    const added = [...caches].filter(([namespace]) => !this.#attachments.has(namespace));
    // Caches overlap only when switching between single namespaces and all namespaces.
    const overlaps = [...dropped, ...added.map(([namespace]) => namespace)].includes(undefined);
    const before = new Map<ObjectKey, DecodedResource>();
    for (const key of overlaps ? this.keys() : []) {
      const isKept = caches.has(undefined) || caches.has(refOfKey(key).namespace);
      if (isKept) before.set(key, this.#attachmentOf(key)!.cache.peek(key)!);
    }
    const held = dropped.flatMap((namespace) => this.detach(namespace));
    for (const [namespace, cache] of added) {
      // A pending write that the new watch has not reached yet stays readable.
      for (const entry of before.values())
        if (namespace === undefined || entry.object.metadata.namespace === namespace) cache.put(entry);
      this.attach(cache, namespace, before);
    }
    // Changes that were held because of a write are already cached, so the new caches do not report them.
    for (const change of held) if (this.#attachmentOf(change.key) !== undefined) this.#notify(change);
    for (const [key, { object }] of before) if (!this.has(key)) this.#notify(unseenDeletionOf(object));
  }

  /** Calls `listener` for each change that is not an own write. Returns a function that unsubscribes it. */
  onChange(listener: (change: ResourceChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The number of objects with own writes that are in flight or whose event has not arrived. */
  get ownWrites(): number {
    return [...this.#attachments.values()].reduce((sum, { ownEvents }) => sum + ownEvents.size, 0);
  }

  /** Returns an object, or undefined if it is evicted or not cached. */
  get(key: ObjectKey): DecodedResource | undefined {
    return this.#attachmentOf(key)?.cache.get(key);
  }

  /** Returns whether an object is cached, whole or evicted. */
  has(key: ObjectKey): boolean {
    return this.#attachmentOf(key)?.cache.has(key) ?? false;
  }

  /** Returns whether an object is the copy that remains of an evicted one. */
  isEvicted(object: KubernetesObject): boolean {
    return this.#isBounded && isEvicted(object);
  }

  *keys(): IterableIterator<ObjectKey> {
    for (const { cache } of this.#attachments.values()) yield* cache.keys();
  }

  /** Returns the objects of one or all namespaces that satisfy `where`, without evicted ones. */
  list({ namespace, where }: ListOptions = {}): DecodedResource[] {
    const found: DecodedResource[] = [];
    for (const key of this.#attachments.get(namespace)?.cache.keys() ?? this.keys()) {
      const isIn = namespace === undefined || key.startsWith(`${namespace}/`);
      const entry = isIn ? this.get(key) : undefined;
      if (entry !== undefined && (where === undefined || where(entry.object))) found.push(entry);
    }
    return found;
  }

  /** Adds an index over all objects, or replaces the function of an existing one. */
  addIndex(name: string, valuesOf: IndexFunction): void {
    this.removeIndex(name);
    this.#indexes.set(name, valuesOf);
    for (const { cache } of this.#attachments.values()) cache.addIndex(valuesOf, this.#reporterOf(name));
  }

  /** Rebuilds all indexes, because something else that the index functions read has changed. */
  refreshIndexes(): void {
    for (const [name, valuesOf] of [...this.#indexes]) {
      this.removeIndex(name);
      this.#indexes.set(name, (object) => valuesOf(object));
      for (const { cache } of this.#attachments.values())
        cache.addIndex(this.#indexes.get(name)!, this.#reporterOf(name));
    }
  }

  removeIndex(name: string): void {
    const valuesOf = this.#indexes.get(name);
    if (valuesOf === undefined) return;
    this.#indexes.delete(name);
    for (const { cache } of this.#attachments.values()) cache.removeIndex(valuesOf);
  }

  /** Returns the keys of the objects that an index contains under `value`. Throws if there is no index with this name. */
  keysByIndex(name: string, value: string): ReadonlySet<ObjectKey> {
    const valuesOf = this.#indexes.get(name);
    if (valuesOf === undefined)
      throw new Error(`there is no index "${name}" of ${this.definition.plural}; add it to indexes`);
    const found = [...this.#attachments.values()].flatMap(({ cache }) => cache.indexOf(valuesOf)?.keysOf(value) ?? []);
    return found.length > 1 ? new Set(found.flatMap((keys) => [...keys])) : (found[0] ?? NONE);
  }

  /** Returns all values that occur in an index. */
  valuesOfIndex(name: string): ReadonlySet<string> {
    const valuesOf = this.#indexes.get(name);
    const caches = [...this.#attachments.values()];
    return new Set(caches.flatMap(({ cache }) => [...(cache.indexOf(valuesOf)?.values ?? [])]));
  }

  /** Returns whether an index contains any value. */
  hasIndexed(name: string): boolean {
    const valuesOf = this.#indexes.get(name);
    return [...this.#attachments.values()].some(({ cache }) => (cache.indexOf(valuesOf)?.size ?? 0) > 0);
  }

  /** Returns whether an index contains the object with this key under `value`. */
  isIndexed(name: string, value: string, key: ObjectKey): boolean {
    return this.indexFor(name, key)?.keysOf(value)?.has(key) === true;
  }

  /** Returns the objects that an index contains under `value`. */
  byIndex(name: string, value: string): DecodedResource[] {
    return [...this.keysByIndex(name, value)].flatMap((key) => this.get(key) ?? []);
  }

  getVersion(key: ObjectKey, version: string): DecodedResource | undefined {
    return this.#attachmentOf(key)?.cache.getVersion(key, version);
  }

  /** Returns the index with this name in the cache that contains an object. */
  indexFor(name: string, key: ObjectKey): ObjectIndex | undefined {
    return this.#attachmentOf(key)?.cache.indexOf(this.#indexes.get(name));
  }

  async load(keys: Iterable<ObjectKey>, options: LoadOptions = {}): Promise<void> {
    const wanted = [...keys];
    const isIn = (attachment: Attachment) => (key: ObjectKey) => this.#attachmentOf(key) === attachment;
    await Promise.all(
      [...this.#attachments.values()].map((each) => each.cache.bounded?.load(wanted.filter(isIn(each)), options)),
    );
  }

  release(holder: string): void {
    for (const { cache } of this.#attachments.values()) cache.bounded?.release(holder);
  }

  /** Adds the indexes of this view to a cache that will be attached. Returns a function that removes them. */
  addIndexesTo(cache: ResourceCache): () => void {
    const added = [...this.#indexes];
    for (const [name, valuesOf] of added) cache.addIndex(valuesOf, this.#reporterOf(name));
    return () => added.forEach(([, valuesOf]) => cache.removeIndex(valuesOf));
  }

  /**
   * Throws if an object must not be written, because the view is partial, so that the object cannot be compared, or because etcd was restored and the
   * caches are newer than the API server.
   */
  requireWhole(key: ObjectKey): void {
    const isOutdated = this.#attachmentOf(key)?.cache.isOutdated === true;
    if (!this.isPartial && !isOutdated) return;
    const problem = `${describeObject(this.definition, refOfKey(key))} cannot be written`;
    const restored = "the store of the API server was restored to an older state, which is being read";
    if (isOutdated) throw new RetryAfterError(`${problem} now: ${restored}; try again`, 5_000);
    const why = "the event source that watches it keeps only a part of each object";
    throw new Error(`${problem}: ${why}; give the source cache: full, or write through another source`);
  }

  /**
   * Begins a write: changes of the object are held in `views` until the returned function is called. Pass it the response, unless the write failed.
   */
  beginWrite(key: ObjectKey, { views = [this], madeFor }: Partial<OwnChange> = {}): (written?: Written) => void {
    this.requireWhole(key);
    const held = views.flatMap((view) => view.#holderOf(key));
    for (const { ownEvents } of held) ownEvents.open(key);
    return (written) => {
      if (written !== undefined) this.put(written.entry);
      const ownVersion = written?.isOwn === true ? versionOf(written.entry) : undefined;
      for (const { view, cache, ownEvents } of held) {
        if (ownVersion !== undefined) ownEvents.recordOwn(key, ownVersion, madeFor);
        view.#notify(ownEvents.close(key, cache.observedVersion));
      }
    };
  }

  /** Adds the response to a write. Listeners are still notified of its event. */
  put(entry: DecodedResource): void {
    this.#attachmentOf(keyOf(entry.object.metadata))?.cache.put(entry);
  }

  /** Begins an own deletion: its event is held until the returned function is called, and dropped if the deletion removed the object (`isGone`). */
  beginDeletion(key: ObjectKey, uid: string, { views = [this], madeFor }: Partial<OwnChange> = {}): EndDeletion {
    const held = views.flatMap((view) => view.#holderOf(key));
    for (const { ownEvents } of held) ownEvents.openDeletion(uid);
    return ({ isGone }) => {
      for (const view of isGone ? new Set(views) : [])
        view.#attachmentOf(key)?.cache.removeOwn(key, uid, { views, madeFor });
      for (const { view, ownEvents } of held) view.#notify(ownEvents.closeDeletion(uid, isGone, madeFor));
    };
  }

  /** Returns where to hold the events of an own write to an object in this view; empty if its resourceVersions cannot be compared. */
  #holderOf(key: ObjectKey): readonly (Attachment & { readonly view: ResourceView })[] {
    const attachment = this.#attachmentOf(key);
    return attachment?.cache.comparesVersions === true ? [{ view: this, ...attachment }] : [];
  }

  #reporterOf(name: string): IndexReporter {
    return (key, ...error) => this.#onIndexFailure?.(name, key, ...error);
  }

  #notify(...changes: readonly (ResourceChange | undefined)[]): void {
    for (const change of changes) if (change !== undefined) for (const listener of this.#listeners) listener(change);
  }

  #attachmentOf(key: ObjectKey): Attachment | undefined {
    return this.#attachments.get(undefined) ?? this.#attachments.get(refOfKey(key).namespace);
  }
}

/**
 * Returns the view of an event source, a property that is not part of the public types. Undefined if the source does not watch a Kubernetes kind.
 */
export function viewOf(source: object): ResourceView | undefined {
  const { view } = source as { readonly view?: ResourceView };
  // Not instanceof: the source may come from another copy of this package.
  return typeof view?.beginWrite === "function" ? view : undefined;
}

// Returns the changes between the state that a view has reported and the state in a cache that is attached.
function sinceBefore(key: ObjectKey, entry: DecodedResource, known?: DecodedResource): readonly ResourceChange[] {
  const { object, owned } = entry;
  const added = { kind: "added", key, object, isInitial: true } as const;
  if (known === undefined) return [added];
  if (uidOf(known) !== uidOf(entry)) return [unseenDeletionOf(known.object), added];
  const isNews = isNewerVersion(versionOf(entry), versionOf(known));
  return isNews ? [{ ...added, kind: "updated", owned, old: known.object }] : [];
}

/** The views of one controller. A write or deletion through one of them is also an own event in the others. */
export class OwnViews {
  readonly #holders = new Map<ResourceView, { readonly client?: object | undefined }>();

  /** Adds the view of an event source. `client` is set if the source watches another cluster than that of the operator. */
  add(view: ResourceView, holder: { readonly client?: object | undefined }): void {
    this.#holders.set(view, holder);
  }

  delete(view: ResourceView): void {
    this.#holders.delete(view);
  }

  /** Returns the views that may contain an object that is changed through `view` for a primary. Each has a watch of its own. */
  around(view: ResourceView, primary?: KubernetesObject): OwnChange {
    const holder = this.#holders.get(view);
    const kind = nameOfType(view.definition);
    const views = [...this.#holders].flatMap(([other, { client }]) =>
      client === holder?.client && nameOfType(other.definition) === kind ? other : [],
    );
    return { views: holder === undefined ? [view] : views, madeFor: primary && keyOf(primary.metadata) };
  }
}

/** Returns the event of an own change for all other primaries. Undefined if it was not made for a primary, so that no primary needs it. */
function changeMadeFor(change: ResourceChange, madeFor: ObjectKey | undefined): ResourceChange | undefined {
  return madeFor === undefined ? undefined : { ...change, madeFor };
}

type Versioned = Pick<HeldChange, "version">;

/** The resourceVersion of an own write, with the primary of the reconcile if there is one. */
interface OwnVersion extends Versioned {
  readonly madeFor: ObjectKey | undefined;
}

interface HeldChange {
  readonly version: string;
  readonly change: ResourceChange;
}

/**
 * Separates the events of own writes to one object from changes by other clients (EventFilterWindow in JOSDK).
 *
 * While a write is in flight, its resourceVersion is unknown, so changes are held until `check` returns or drops them. When it is known, the held
 * changes up to it are either exactly the own events, which are dropped for the primary whose reconcile wrote, or they are merged into one change.
 * Deletions are never dropped, nor are changes found by a list, because changes by other clients may have been missed before it.
 */
export class EventWindow {
  #activeWrites = 0;
  /** The resourceVersions of own writes whose event has not arrived, oldest first. */
  readonly #own: OwnVersion[] = [];
  /** At most one change per resourceVersion, oldest first. */
  readonly #held: HeldChange[] = [];

  /** Whether no write is in flight, no change is held, and no own event is expected. */
  get isDone(): boolean {
    return this.#activeWrites === 0 && this.#own.length === 0 && this.#held.length === 0;
  }

  open(): void {
    this.#activeWrites++;
  }

  close(): void {
    if (this.#activeWrites > 0) this.#activeWrites--;
  }

  recordOwn(version: string, madeFor?: ObjectKey): void {
    insertByVersion(this.#own, { version, madeFor });
  }

  add(change: ResourceChange, version: string): void {
    insertByVersion(this.#held, { change, version });
  }

  /**
   * Returns the held deletion of an object when another object with the same name appears. The reconcile that created the new one needs no event for
   * it.
   */
  endBefore({ object }: ResourceChange, version: string): ResourceChange | undefined {
    const last = this.#held.at(-1);
    if (last?.change.kind !== "deleted" || last.change.object.metadata.uid === object.metadata.uid) return undefined;
    const maker = this.#own.find((own) => own.version === version);
    this.#settle(this.#held.length, countUpTo(this.#own, last.version));
    return maker === undefined ? last.change : { ...last.change, madeFor: maker.madeFor };
  }

  /** Returns the change to report now, if any, and drops what is settled. */
  check(): ResourceChange | undefined {
    const last = this.#held.at(-1);
    if (last === undefined) return undefined;
    if (this.#own.length === 0) {
      const isFree = this.#activeWrites === 0 || this.#held[0]!.change.kind === "deleted";
      return isFree ? this.#settle(this.#held.length, 0) : undefined;
    }
    const arrived = countUpTo(this.#own, last.version);
    if (arrived === 0) return undefined;
    // A change after the last own resourceVersion may be the event of the write in flight.
    const mayBeOwn = arrived === this.#own.length && this.#activeWrites > 0;
    return this.#settle(mayBeOwn ? countUpTo(this.#held, this.#own.at(-1)!.version) : this.#held.length, arrived);
  }

  /** Drops own resourceVersions up to `version`, which the watch has passed. Returns whether there were any. */
  forgetOwnUpTo(version: string): boolean {
    return this.#own.splice(0, countUpTo(this.#own, version)).length > 0;
  }

  /** Ends all writes. Returns the held change, unless it is known to be an own event. */
  drain(): ResourceChange | undefined {
    this.#activeWrites = 0;
    return this.#settle(this.#held.length, this.#own.length);
  }

  /** Drops held changes and expected own events up to `version`. Writes in flight continue. */
  forgetUpTo(version: string): void {
    this.forgetOwnUpTo(version);
    this.#held.splice(0, countUpTo(this.#held, version));
  }

  #settle(changes: number, versions: number): ResourceChange | undefined {
    if (changes === 0) return undefined;
    const settled = this.#held.splice(0, changes);
    const own = this.#own.splice(0, versions);
    const last = settled.at(-1)!;
    if (last.change.kind === "deleted") return last.change;
    const isFromList = settled.some(({ change }) => change.isInitial);
    // The object was re-created, so the deletion is covered by its new state.
    if (settled.length > 1 && settled[0]!.change.kind === "deleted") settled.shift();
    const isOwn = settled.length === own.length && settled.every(({ version }, at) => version === own[at]!.version);
    const change = settled.length === 1 ? last.change : mergeChanges(settled);
    return isOwn && !isFromList ? ownEventOf(change, own) : change;
  }
}

// A change by the reconcile of one primary is an event for all other primaries of the object.
function ownEventOf(change: ResourceChange, own: readonly OwnVersion[]): ResourceChange | undefined {
  const [madeFor, ...others] = new Set(own.map((each) => each.madeFor));
  if (others.length > 0) return change;
  return changeMadeFor(change, madeFor);
}

function mergeChanges(changes: readonly HeldChange[]): ResourceChange {
  const first = changes[0]!.change;
  const { key, object, owned, written } = changes.at(-1)!.change;
  const isInitial = changes.every(({ change }) => change.isInitial);
  const change: ResourceChange = { kind: "updated", key, object, owned, old: first.old ?? first.object, isInitial };
  return written === undefined ? change : { ...change, written };
}

function countUpTo(sorted: readonly Versioned[], version: string): number {
  let count = sorted.length;
  while (count > 0 && isNewerVersion(sorted[count - 1]!.version, version)) count--;
  return count;
}

// Replaces an item with the same resourceVersion.
function insertByVersion<Item extends Versioned>(sorted: Item[], item: Item): void {
  const behind = countUpTo(sorted, item.version);
  const known = sorted[behind - 1]?.version === item.version ? 1 : 0;
  sorted.splice(behind - known, known, item);
}

/** The own deletions of one object that are in flight. */
interface DeletionsUnderWay {
  count: number;
  /** Whether one of them has deleted the object. */
  isOwn: boolean;
  madeFor?: ObjectKey | undefined;
  /** The deletion event that the watch has delivered in the meantime. */
  held?: { readonly change: ResourceChange; readonly version: string } | undefined;
}

/** Filters the events of a controller's own writes (EventFilterSupport in JOSDK) and, unlike JOSDK, of its own deletions. */
export class OwnEvents {
  readonly #windows = new Map<ObjectKey, EventWindow>();
  /** By UID: an object with the same name may already have been re-created. */
  readonly #deletions = new Map<string, DeletionsUnderWay>();

  get size(): number {
    return this.#windows.size + this.#deletions.size;
  }

  openDeletion(uid: string): void {
    const known = this.#deletions.get(uid) ?? { count: 0, isOwn: false };
    this.#deletions.set(uid, known);
    known.count++;
  }

  /** Ends an own deletion, which may or may not have removed the object. The last one in flight returns the held change to report now, if any. */
  closeDeletion(uid: string, isGone: boolean, madeFor?: ObjectKey): ResourceChange | undefined {
    const known = this.#deletions.get(uid);
    if (known === undefined) return undefined;
    known.isOwn ||= isGone;
    known.madeFor ??= madeFor;
    if (--known.count > 0) return undefined;
    this.#deletions.delete(uid);
    if (!known.isOwn) return this.#release(known);
    if (known.held === undefined) return undefined;
    this.forget(known.held.change.key, known.held.version);
    return changeMadeFor(known.held.change, known.madeFor);
  }

  /** Handles a change from the watch. Returns the changes to report now. */
  take(change: ResourceChange, version: string): readonly (ResourceChange | undefined)[] {
    const uid = change.object.metadata.uid ?? "";
    const own = change.kind === "deleted" ? this.#deletions.get(uid) : undefined;
    if (own !== undefined) {
      own.held = { change, version };
      return [];
    }
    // The held deletion of an earlier object with the same name is reported first, so that state kept for that object is removed.
    const earlier = [...this.#deletions.values()].find(({ held }) => held?.change.key === change.key);
    const released = earlier && this.#release(earlier);
    return [released, this.#windows.get(change.key)?.endBefore(change, version), this.filter(change, version)];
  }

  open(key: ObjectKey): void {
    const window = this.#windows.get(key) ?? new EventWindow();
    this.#windows.set(key, window);
    window.open();
  }

  /** Records the resourceVersion of an own write. Ignored if no window is open. */
  recordOwn(key: ObjectKey, version: string, madeFor?: ObjectKey): void {
    this.#windows.get(key)?.recordOwn(version, madeFor);
  }

  /** Ends an own write while the watch is at `watchVersion`. Returns the held change to report now, if any. */
  close(key: ObjectKey, watchVersion = "0"): ResourceChange | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    window.close();
    const change = this.#check(key, window);
    // The own event arrived before the response and was checked, or it will never arrive.
    return window.forgetOwnUpTo(watchVersion) ? (this.#check(key, window) ?? change) : change;
  }

  /** Handles a change from the watch. Returns the change to report now: this one, a held one, or both merged. */
  filter(change: ResourceChange, version: string): ResourceChange | undefined {
    const window = this.#windows.get(change.key);
    if (window === undefined) return change;
    window.add(change, version);
    return this.#check(change.key, window);
  }

  /** Advances to the resourceVersion of the watch. Returns the changes that were held for own events that will not arrive. */
  passTo(version: string): ResourceChange[] {
    // JOSDK keeps such a window until the next event of the object, which may never arrive.
    const passed = [...this.#windows].filter(([, window]) => window.forgetOwnUpTo(version));
    return passed.flatMap(([key, window]) => this.#check(key, window) ?? []);
  }

  /** Closes all windows. Returns the changes that were held. */
  drain(): ResourceChange[] {
    const changes = [...this.#windows.values()].flatMap((window) => window.drain() ?? []);
    const deletions = [...this.#deletions.values()].flatMap(({ held }) => held?.change ?? []);
    this.#windows.clear();
    this.#deletions.clear();
    return [...changes, ...deletions];
  }

  /** Drops the held changes and expected own events of a deleted object up to `version`. Writes in flight continue. */
  forget(key: ObjectKey, version: string): void {
    const window = this.#windows.get(key);
    if (window === undefined) return;
    window.forgetUpTo(version);
    if (window.isDone) this.#windows.delete(key);
  }

  #release(deletions: DeletionsUnderWay): ResourceChange | undefined {
    const { held } = deletions;
    deletions.held = undefined;
    return held && this.filter(held.change, held.version);
  }

  #check(key: ObjectKey, window: EventWindow): ResourceChange | undefined {
    const change = window.check();
    if (window.isDone) this.#windows.delete(key);
    return change;
  }
}
