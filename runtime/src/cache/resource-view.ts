// The objects of a kind as one controller sees them. Its caches are shared by all controllers of the operator; the view knows which changes
// are own writes, and notifies its listeners of all others.
// A write of one controller is visible to the next read of any other. The watch notifies all controllers but the writer.
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

/** Tells whether a new resource is worth a reconcile. */
export type OnAddFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** Tells whether a change is worth a reconcile. */
export type OnUpdateFilter<Resource = KubernetesObject> = (resource: Resource, old: Resource) => boolean;

/** Tells whether a deletion is worth a reconcile; `isFinalStateUnknown` if no watch was running when it happened. */
export type OnDeleteFilter<Resource = KubernetesObject> = (resource: Resource, isFinalStateUnknown: boolean) => boolean;

/** Tells whether anything that happens to a resource is worth a reconcile. */
export type GenericFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** What an event has to pass to cause a reconcile: `generic` and the filter of its kind. Default: all passes. Caches and indexes see all. */
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

/** A cache that a view shows, with the own events of the view. */
interface Attachment {
  readonly cache: ResourceCache;
  readonly ownEvents: OwnEvents;
  readonly unsubscribe: () => void;
}

/** The answer to a write. */
export interface Written {
  readonly entry: DecodedResource;
  /** Whether the write proved to make this version: if it changed nothing, it is that of a foreign change, whose event may be still to come. */
  readonly isOwn: boolean;
}

interface ResourceViewOptions {
  readonly isPartial?: boolean;
  /** Notified that an index failed for an object, or, without `error`, that it succeeds again. */
  readonly onIndexFailure?: (index: string, key: ObjectKey, error?: unknown) => void;
}

/** Who changes an object: a controller, by its views that may show the object, and the primary for whose reconcile it does. */
interface OwnChange {
  readonly views: readonly ResourceView[];
  readonly madeFor?: ObjectKey | undefined;
}

type EndDeletion = (ended: { readonly isGone: boolean }) => void;

const NONE: ReadonlySet<ObjectKey> = new Set();

/** The objects of one kind as one controller sees them, from one cache for all namespaces or one for each. */
export class ResourceView {
  readonly definition: ResourceDefinition;
  /** Whether the caches keep only a part of each object: then nothing can be written through this view. */
  readonly isPartial: boolean;
  /** By namespace; that of all namespaces has no name. */
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

  /** Shows the objects of a cache of one namespace, or of all. The listeners are notified of those that are not in `before` as added. */
  attach(cache: ResourceCache, namespace?: string, before: ReadonlyMap<ObjectKey, DecodedResource> = new Map()): void {
    const ownEvents = new OwnEvents();
    const unsubscribe = cache.subscribe({
      onChange: (change, version) => {
        // The controller that deleted the object needs no further events of it.
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

  /** Stops showing a cache, without notifications, and forgets own writes there. Returns the changes that were held for these. */
  detach(namespace?: string): readonly ResourceChange[] {
    const attachment = this.#attachments.get(namespace);
    if (attachment === undefined) return [];
    this.#attachments.delete(namespace);
    attachment.unsubscribe();
    for (const valuesOf of this.#indexes.values()) attachment.cache.removeIndex(valuesOf);
    return attachment.ownEvents.drain();
  }

  /** Shows only these caches. A listener is notified of what has changed since the view knew it, and not of what goes with a namespace. */
  show(caches: ReadonlyMap<string | undefined, ResourceCache>): void {
    const dropped = [...this.#attachments.keys()].filter((namespace) => !caches.has(namespace));
    const added = [...caches].filter(([namespace]) => !this.#attachments.has(namespace));
    // Only a change between one namespace and all of them brings again what is known.
    const overlaps = [...dropped, ...added.map(([namespace]) => namespace)].includes(undefined);
    const before = new Map<ObjectKey, DecodedResource>();
    for (const key of overlaps ? this.keys() : []) {
      const isKept = caches.has(undefined) || caches.has(refOfKey(key).namespace);
      if (isKept) before.set(key, this.#attachmentOf(key)!.cache.peek(key)!);
    }
    const held = dropped.flatMap((namespace) => this.detach(namespace));
    for (const [namespace, cache] of added) {
      // An answer to an own write that the new watch has not come to stays readable.
      for (const entry of before.values())
        if (namespace === undefined || entry.object.metadata.namespace === namespace) cache.put(entry);
      this.attach(cache, namespace, before);
    }
    // Changes that were held back for a write are known already, so the new caches do not bring them.
    for (const change of held) if (this.#attachmentOf(change.key) !== undefined) this.#notify(change);
    for (const [key, { object }] of before) if (!this.has(key)) this.#notify(unseenDeletionOf(object));
  }

  /** Notifies `listener` of every change that is not an own one; returns the function that ends it. */
  onChange(listener: (change: ResourceChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The number of objects with own writes that are in flight, or whose event has not arrived. */
  get ownWrites(): number {
    return [...this.#attachments.values()].reduce((sum, { ownEvents }) => sum + ownEvents.size, 0);
  }

  /** Returns an object; undefined if it is unknown or evicted. */
  get(key: ObjectKey): DecodedResource | undefined {
    return this.#attachmentOf(key)?.cache.get(key);
  }

  /** Tells whether an object is known, whole or evicted. */
  has(key: ObjectKey): boolean {
    return this.#attachmentOf(key)?.cache.has(key) ?? false;
  }

  /** Tells whether an object is the copy of one that a bounded cache evicted. */
  isEvicted(object: KubernetesObject): boolean {
    return this.#isBounded && isEvicted(object);
  }

  *keys(): IterableIterator<ObjectKey> {
    for (const { cache } of this.#attachments.values()) yield* cache.keys();
  }

  /** Returns the objects of one or all namespaces that fulfil a condition, without evicted ones. */
  list({ namespace, where }: ListOptions = {}): DecodedResource[] {
    const found: DecodedResource[] = [];
    for (const key of this.#attachments.get(namespace)?.cache.keys() ?? this.keys()) {
      const isIn = namespace === undefined || key.startsWith(`${namespace}/`);
      const entry = isIn ? this.get(key) : undefined;
      if (entry !== undefined && (where === undefined || where(entry.object))) found.push(entry);
    }
    return found;
  }

  /** Adds an index of all objects, or replaces the function of an index. */
  addIndex(name: string, valuesOf: IndexFunction): void {
    this.removeIndex(name);
    this.#indexes.set(name, valuesOf);
    for (const { cache } of this.#attachments.values()) cache.addIndex(valuesOf, this.#reporterOf(name));
  }

  /** Indexes all objects again, as what the index functions read has changed. */
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

  /** Returns the keys of the objects for which the index function gave `value`; throws if there is no index of this name. */
  keysByIndex(name: string, value: string): ReadonlySet<ObjectKey> {
    const valuesOf = this.#indexes.get(name);
    if (valuesOf === undefined)
      throw new Error(`there is no index "${name}" of ${this.definition.plural}; add it to indexes`);
    const found = [...this.#attachments.values()].flatMap(({ cache }) => cache.indexOf(valuesOf)?.keysOf(value) ?? []);
    return found.length > 1 ? new Set(found.flatMap((keys) => [...keys])) : (found[0] ?? NONE);
  }

  /** Returns the values that an index function gave for any object. */
  valuesOfIndex(name: string): ReadonlySet<string> {
    const valuesOf = this.#indexes.get(name);
    const caches = [...this.#attachments.values()];
    return new Set(caches.flatMap(({ cache }) => [...(cache.indexOf(valuesOf)?.values ?? [])]));
  }

  /** Tells whether the index function gave any value for any object. */
  hasIndexed(name: string): boolean {
    const valuesOf = this.#indexes.get(name);
    return [...this.#attachments.values()].some(({ cache }) => (cache.indexOf(valuesOf)?.size ?? 0) > 0);
  }

  /** Tells whether the index function gave `value` for the object with a key. */
  isIndexed(name: string, value: string, key: ObjectKey): boolean {
    return this.indexFor(name, key)?.keysOf(value)?.has(key) === true;
  }

  /** Returns the objects for which the index function gave `value`. */
  byIndex(name: string, value: string): DecodedResource[] {
    return [...this.keysByIndex(name, value)].flatMap((key) => this.get(key) ?? []);
  }

  getVersion(key: ObjectKey, version: string): DecodedResource | undefined {
    return this.#attachmentOf(key)?.cache.getVersion(key, version);
  }

  /** Returns the index of this name that holds an object. */
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

  /** Keeps the indexes of this view on a cache that will be attached; returns the function that ends it. */
  addIndexesTo(cache: ResourceCache): () => void {
    const added = [...this.#indexes];
    for (const [name, valuesOf] of added) cache.addIndex(valuesOf, this.#reporterOf(name));
    return () => added.forEach(([, valuesOf]) => cache.removeIndex(valuesOf));
  }

  /** Throws if an object cannot be written: a part cannot be compared, and after a restore the caches are newer than the API server. */
  requireWhole(key: ObjectKey): void {
    const isOutdated = this.#attachmentOf(key)?.cache.isOutdated === true;
    if (!this.isPartial && !isOutdated) return;
    const problem = `${describeObject(this.definition, refOfKey(key))} cannot be written`;
    const restored = "the store of the API server was restored to an older state, which is being read";
    if (isOutdated) throw new RetryAfterError(`${problem} now: ${restored}; try again`, 5_000);
    const why = "the event source that watches it keeps only a part of each object";
    throw new Error(`${problem}: ${why}; give the source cache: full, or write through another source`);
  }

  /** Begins a write: changes of the object are held in `views` until it is ended, with its answer unless it failed. Returns how to end it. */
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

  /** Takes the answer to a write. Listeners are notified of its event like of any other. */
  put(entry: DecodedResource): void {
    this.#attachmentOf(keyOf(entry.object.metadata))?.cache.put(entry);
  }

  /** Begins an own deletion: its event is held until it is ended, and dropped if the object `isGone` by it. Returns how to end it. */
  beginDeletion(key: ObjectKey, uid: string, { views = [this], madeFor }: Partial<OwnChange> = {}): EndDeletion {
    const held = views.flatMap((view) => view.#holderOf(key));
    for (const { ownEvents } of held) ownEvents.openDeletion(uid);
    return ({ isGone }) => {
      for (const view of isGone ? new Set(views) : [])
        view.#attachmentOf(key)?.cache.removeOwn(key, uid, { views, madeFor });
      for (const { view, ownEvents } of held) view.#notify(ownEvents.closeDeletion(uid, isGone, madeFor));
    };
  }

  /** Returns what has to hold the events of an own write of an object here. */
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

/** Returns the view of an event source, which the types of users lack; undefined if the source is not of a kind of Kubernetes. */
export function viewOf(source: object): ResourceView | undefined {
  const { view } = source as { readonly view?: ResourceView };
  // By what it can do: a source may come from another copy of this package.
  return typeof view?.beginWrite === "function" ? view : undefined;
}

// What a cache that is attached knows, and the view did not know before.
function sinceBefore(key: ObjectKey, entry: DecodedResource, known?: DecodedResource): readonly ResourceChange[] {
  const { object, owned } = entry;
  const added = { kind: "added", key, object, isInitial: true } as const;
  if (known === undefined) return [added];
  if (uidOf(known) !== uidOf(entry)) return [unseenDeletionOf(known.object), added];
  const isNews = isNewerVersion(versionOf(entry), versionOf(known));
  return isNews ? [{ ...added, kind: "updated", owned, old: known.object }] : [];
}

/** The views of one controller: its own writes and deletions through one of them are no events of the others. */
export class OwnViews {
  readonly #holders = new Map<ResourceView, { readonly client?: object | undefined }>();

  /** Adds the view of an event source, whose client is set if it watches another cluster than the operator's own. */
  add(view: ResourceView, holder: { readonly client?: object | undefined }): void {
    this.#holders.set(view, holder);
  }

  delete(view: ResourceView): void {
    this.#holders.delete(view);
  }

  /** Returns the views that may show what is changed through `view` for a primary, each from a watch of its own. */
  around(view: ResourceView, primary?: KubernetesObject): OwnChange {
    const holder = this.#holders.get(view);
    const kind = nameOfType(view.definition);
    const views = [...this.#holders].flatMap(([other, { client }]) =>
      client === holder?.client && nameOfType(other.definition) === kind ? other : [],
    );
    return { views: holder === undefined ? [view] : views, madeFor: primary && keyOf(primary.metadata) };
  }
}

/** Returns the event that the change of a reconcile is for all other primaries; undefined if it was for no primary, so that none needs it. */
function changeMadeFor(change: ResourceChange, madeFor: ObjectKey | undefined): ResourceChange | undefined {
  return madeFor === undefined ? undefined : { ...change, madeFor };
}

type Versioned = Pick<HeldChange, "version">;

/** An own write, for the reconcile of a primary if there is one. */
interface OwnVersion extends Versioned {
  readonly madeFor: ObjectKey | undefined;
}

interface HeldChange {
  readonly version: string;
  readonly change: ResourceChange;
}

/**
 * Tells the events of own writes to one object from changes by other clients (JOSDK EventFilterWindow).
 *
 * The version of a write in flight is unknown, so changes are held until `check` returns or drops them. When the version is known, the changes up to it
 * are either the own event alone, which is none for the primary of the reconcile that wrote, or merged into one. A deletion is never dropped, nor is
 * a change that a list brings: changes by other clients may have gone unseen before it.
 */
export class EventWindow {
  #activeWrites = 0;
  /** The versions of own writes whose event has not arrived, oldest first. */
  readonly #own: OwnVersion[] = [];
  /** At most one change per version, oldest first. */
  readonly #held: HeldChange[] = [];

  /** Whether no write is in flight, no change is held, and no own event is awaited. */
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

  /** Returns the held deletion of an object when another object with its name appears. The reconcile that created that one needs no event of it. */
  endBefore({ object }: ResourceChange, version: string): ResourceChange | undefined {
    const last = this.#held.at(-1);
    if (last?.change.kind !== "deleted" || last.change.object.metadata.uid === object.metadata.uid) return undefined;
    const maker = this.#own.find((own) => own.version === version);
    this.#settle(this.#held.length, countUpTo(this.#own, last.version));
    return maker === undefined ? last.change : { ...last.change, madeFor: maker.madeFor };
  }

  /** Returns the change to notify now, if there is one, and forgets what is settled. */
  check(): ResourceChange | undefined {
    const last = this.#held.at(-1);
    if (last === undefined) return undefined;
    if (this.#own.length === 0) {
      const isFree = this.#activeWrites === 0 || this.#held[0]!.change.kind === "deleted";
      return isFree ? this.#settle(this.#held.length, 0) : undefined;
    }
    const arrived = countUpTo(this.#own, last.version);
    if (arrived === 0) return undefined;
    // A change after the last own version may be the event of the write in flight.
    const mayBeOwn = arrived === this.#own.length && this.#activeWrites > 0;
    return this.#settle(mayBeOwn ? countUpTo(this.#held, this.#own.at(-1)!.version) : this.#held.length, arrived);
  }

  /** Forgets own versions up to `version`, which the watch has passed; tells whether there were any. */
  forgetOwnUpTo(version: string): boolean {
    return this.#own.splice(0, countUpTo(this.#own, version)).length > 0;
  }

  /** Ends all writes; returns the held change, unless it is known to be an own event. */
  drain(): ResourceChange | undefined {
    this.#activeWrites = 0;
    return this.#settle(this.#held.length, this.#own.length);
  }

  /** Forgets held changes and awaited own events up to `version`; writes in flight go on. */
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
    // The object was re-created: its new state says all.
    if (settled.length > 1 && settled[0]!.change.kind === "deleted") settled.shift();
    const isOwn = settled.length === own.length && settled.every(({ version }, at) => version === own[at]!.version);
    const change = settled.length === 1 ? last.change : mergeChanges(settled);
    return isOwn && !isFromList ? ownEventOf(change, own) : change;
  }
}

// A change by the reconcile of one primary is an event for every other primary of the object.
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

// Replaces an item of the same version.
function insertByVersion<Item extends Versioned>(sorted: Item[], item: Item): void {
  const behind = countUpTo(sorted, item.version);
  const known = sorted[behind - 1]?.version === item.version ? 1 : 0;
  sorted.splice(behind - known, known, item);
}

/** The own deletions of one object that are in flight. */
interface DeletionsUnderWay {
  count: number;
  /** Whether one that has ended did delete the object. */
  isOwn: boolean;
  madeFor?: ObjectKey | undefined;
  /** The deletion that the watch brought meanwhile. */
  held?: { readonly change: ResourceChange; readonly version: string } | undefined;
}

/** Filters the events of one controller's own writes (JOSDK EventFilterSupport), and of its deletions, which JOSDK notifies. */
export class OwnEvents {
  readonly #windows = new Map<ObjectKey, EventWindow>();
  /** By uid: the name may belong to a re-created object already. */
  readonly #deletions = new Map<string, DeletionsUnderWay>();

  get size(): number {
    return this.#windows.size + this.#deletions.size;
  }

  openDeletion(uid: string): void {
    const known = this.#deletions.get(uid) ?? { count: 0, isOwn: false };
    this.#deletions.set(uid, known);
    known.count++;
  }

  /** Ends an own deletion, which deleted the object or did not; the last one in flight returns a held change to notify now. */
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

  /** Takes a change from the watch; returns what to notify now. */
  take(change: ResourceChange, version: string): readonly (ResourceChange | undefined)[] {
    const uid = change.object.metadata.uid ?? "";
    const own = change.kind === "deleted" ? this.#deletions.get(uid) : undefined;
    if (own !== undefined) {
      own.held = { change, version };
      return [];
    }
    // The held deletion of an earlier object of this name comes first: what is kept of that one has to go before.
    const earlier = [...this.#deletions.values()].find(({ held }) => held?.change.key === change.key);
    const released = earlier && this.#release(earlier);
    return [released, this.#windows.get(change.key)?.endBefore(change, version), this.filter(change, version)];
  }

  open(key: ObjectKey): void {
    const window = this.#windows.get(key) ?? new EventWindow();
    this.#windows.set(key, window);
    window.open();
  }

  /** Takes the version of an own write. Ignored without a window. */
  recordOwn(key: ObjectKey, version: string, madeFor?: ObjectKey): void {
    this.#windows.get(key)?.recordOwn(version, madeFor);
  }

  /** Ends an own write while the watch is at `watchVersion`; returns a held change that is to be notified now. */
  close(key: ObjectKey, watchVersion = "0"): ResourceChange | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    window.close();
    const change = this.#check(key, window);
    // The own event came before the answer and was checked, or it will never come.
    return window.forgetOwnUpTo(watchVersion) ? (this.#check(key, window) ?? change) : change;
  }

  /** Takes a change from the watch; returns the change to notify now: this one, a held one, or both merged. */
  filter(change: ResourceChange, version: string): ResourceChange | undefined {
    const window = this.#windows.get(change.key);
    if (window === undefined) return change;
    window.add(change, version);
    return this.#check(change.key, window);
  }

  /** Takes the version that the watch has reached; returns the changes that were held for own events that will not come. */
  passTo(version: string): ResourceChange[] {
    // JOSDK keeps such a window until the next event of the object, which may never come.
    const passed = [...this.#windows].filter(([, window]) => window.forgetOwnUpTo(version));
    return passed.flatMap(([key, window]) => this.#check(key, window) ?? []);
  }

  /** Ends all windows; returns the changes that were held. */
  drain(): ResourceChange[] {
    const changes = [...this.#windows.values()].flatMap((window) => window.drain() ?? []);
    const deletions = [...this.#deletions.values()].flatMap(({ held }) => held?.change ?? []);
    this.#windows.clear();
    this.#deletions.clear();
    return [...changes, ...deletions];
  }

  /** Forgets the held changes and awaited own events of a deleted object up to `version`; writes in flight go on. */
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
