/**
 * In-memory storage of the server.
 *
 * One revision counter is shared by all resources, as in etcd. A resource keeps its objects under `namespace/name` (or `name`) in key order, keeps
 * its latest writes as history, and notifies subscribers of every write before the write returns. A read at an older revision reverts the writes in
 * the history, so pages of a list are consistent without copies.
 *
 * With a journal, a write is appended to it before the write returns, and subscribers are notified once it is durable.
 */
import { plainError } from "../errors/status-error.js";
import { LongIntegers, exactTextOf, parseRounded, withLongIntegers } from "../exact-numbers.js";
import type { JsonObject } from "../json.js";

const FIRST_REVISION = 1000;
const DEFAULT_HISTORY_LIMIT = 10_000;

/** A persisted version of an object; a deletion has no JSON. */
export interface StoredWrite {
  readonly revision: number;
  readonly resource: string;
  readonly key: string;
  readonly json: string | undefined;
}

/** Persisted state of an earlier run. */
export interface StoredState {
  readonly revision: number;
  /** Compacted revision by resource. */
  readonly compacted: ReadonlyMap<string, number>;
  /** In the order of their revisions. */
  readonly writes: readonly StoredWrite[];
}

/** Storage of all resources, with one revision counter. */
export class Store {
  readonly #resources = new Map<string, ResourceStore>();
  readonly #historyLimit: number;
  readonly #shared: SharedState;
  #revision = FIRST_REVISION;
  #journal: Journal | undefined;
  /** Writes that are not durable yet, oldest first. */
  #hidden: { resource: ResourceStore; event: StoreEvent }[] = [];

  constructor(options: { historyLimit?: number | undefined } = {}) {
    this.#historyLimit = options.historyLimit ?? DEFAULT_HISTORY_LIMIT;
    this.#shared = {
      current: () => this.#revision,
      next: () => ++this.#revision,
      shown: () => (this.#hidden[0] === undefined ? this.#revision : this.#hidden[0].event.revision - 1),
      written: (resource, event, forgotten) => this.#written(resource, event, forgotten),
    };
  }

  get revision(): number {
    return this.#revision;
  }

  /** Returns the storage of a resource, such as `widgets.example.com`; creates it on first use. */
  resource(name: string, options: { compacted?: number } = {}): ResourceStore {
    let resource = this.#resources.get(name);
    if (resource === undefined) {
      const history = new History({ limit: this.#historyLimit, compacted: options.compacted ?? 0 });
      this.#resources.set(name, (resource = new ResourceStore(name, this.#shared, history)));
    }
    return resource;
  }

  /** Restores the state of an earlier run; call before the first write. */
  restore(state: StoredState): void {
    for (const [name, compacted] of state.compacted) this.resource(name).compact(compacted);
    for (const { resource, ...write } of state.writes) this.resource(resource).restore(write);
    this.#revision = Math.max(this.#revision, state.revision);
  }

  /** Persists all writes from now on. */
  attach(journal: Journal): void {
    this.#journal = journal;
    journal.onDurable((revision) => this.#show(revision));
  }

  /** Removes a resource and ends its watches. */
  drop(name: string): void {
    const resource = this.#resources.get(name);
    if (resource === undefined) return;
    resource.endWatches();
    this.#resources.delete(name);
    const forgotten = resource.neededRevisions;
    // A resource created later with this name starts with an empty history.
    this.#journal?.append({ revision: this.#revision, forgotten, compacted: { resource: name, revision: 0 } });
  }

  /** Compacts the history of all resources, or of one, like a compaction in etcd. */
  compact(only?: ResourceStore): void {
    // The revision increases, so that clients that are up to date are too old as well.
    const revision = ++this.#revision;
    // Needed even if there is no history, since the revision must never decrease after a restart.
    this.#journal?.append({ revision, forgotten: [] });
    for (const resource of only === undefined ? this.#resources.values() : [only]) {
      const forgotten = supersededBy(resource.compact(revision));
      this.#journal?.append({ revision, forgotten, compacted: { resource: resource.name, revision } });
    }
  }

  /** Ends all watches; clients can restart them. */
  endWatches(): void {
    for (const resource of this.#resources.values()) resource.endWatches();
  }

  #written(resource: ResourceStore, event: StoreEvent, forgotten: readonly StoreEvent[]): void {
    const journal = this.#journal;
    if (journal === undefined) return resource.show(event);
    const { revision, key, current } = event;
    const { name, compacted } = resource;
    journal.append({
      revision,
      write: { resource: name, key, json: current?.json },
      forgotten: supersededBy(forgotten),
      compacted: forgotten.length === 0 ? undefined : { resource: name, revision: compacted },
    });
    this.#hidden.push({ resource, event });
  }

  #show(revision: number): void {
    const index = this.#hidden.findIndex(({ event }) => event.revision > revision);
    const shown = this.#hidden.splice(0, index < 0 ? this.#hidden.length : index);
    for (const { resource, event } of shown) resource.show(event);
  }
}

/** Receives every visible write to a resource; `end` is called when the resource is removed or its watches are closed. */
interface Subscriber {
  next(event: StoreEvent): void;
  end(): void;
}

/** State that is shared by the resources of a store. */
interface SharedState {
  current(): number;
  next(): number;
  /** The newest revision up to which all writes are visible. */
  shown(): number;
  /** Called for each write with the events that left the history; notifies subscribers once the write may become visible. */
  written(resource: ResourceStore, event: StoreEvent, forgotten: readonly StoreEvent[]): void;
}

// etcd's --max-request-bytes, and the message limit of its client.
const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

function checkSize({ json }: StoredObject): void {
  // Fast path: UTF-8 needs at most three bytes per UTF-16 unit.
  if (json.length * 3 <= MAX_OBJECT_BYTES) return;
  const bytes = Buffer.byteLength(json);
  if (bytes > MAX_MESSAGE_BYTES)
    throw plainError(
      `rpc error: code = ResourceExhausted desc = trying to send message larger than max (${bytes} vs. ${MAX_MESSAGE_BYTES})`,
    );
  if (bytes > MAX_OBJECT_BYTES) throw plainError("etcdserver: request is too large");
}

/** The objects of one resource and the history of their writes. */
export class ResourceStore {
  readonly name: string;
  readonly #shared: SharedState;
  readonly #history: History;
  readonly #objects = new Map<string, StoredObject>();
  readonly #keys = new SortedKeys();
  readonly #subscribers = new Set<Subscriber>();
  readonly #followers = new Set<(event: StoreEvent) => void>();
  #version = 0;

  constructor(name: string, shared: SharedState, history: History) {
    this.name = name;
    this.#shared = shared;
    this.#history = history;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** The current revision of the whole store. */
  get revision(): number {
    return this.#shared.current();
  }

  /** Increases with every write to this resource; use it to invalidate values that were computed from the objects. */
  get version(): number {
    return this.#version;
  }

  /** The newest revision of the whole store up to which all writes are visible; sent in bookmarks. */
  get shownRevision(): number {
    return this.#shared.shown();
  }

  /** The newest compacted revision. */
  get compacted(): number {
    return this.#history.compacted;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /**
   * Creates or replaces an object with a new revision, which becomes its resourceVersion. Integers that lose precision as JavaScript numbers are
   * taken from `sources`, then from the replaced object. Throws a StatusError if the object is too large.
   */
  put(key: string, object: JsonObject, sources: readonly LongIntegers[] = []): StoredObject {
    const next = this.#shared.current() + 1;
    const previous = this.#objects.get(key);
    const current = new StoredObject(key, withResourceVersion(object, next), next, withThose(sources, previous));
    checkSize(current);
    const revision = this.#shared.next();
    this.#replace(key, current);
    this.#announce(new StoreEvent({ revision, key, previous, current }));
    return current;
  }

  /** Deletes an object; returns its last state with the revision of the deletion. */
  remove(key: string): StoredObject | undefined {
    const previous = this.#objects.get(key);
    if (previous === undefined) return undefined;
    this.#replace(key, undefined);
    const event = new StoreEvent({ revision: this.#shared.next(), key, previous, current: undefined });
    this.#announce(event);
    return event.departed;
  }

  /** Returns the objects with the key prefix, in key order. */
  list(prefix: string): StoredObject[] {
    return this.#keys.withPrefix(prefix).map((key) => this.#objects.get(key) as StoredObject);
  }

  /** Returns the result of `list` at an older revision; undefined if that is compacted. */
  listAt(revision: number, prefix: string): StoredObject[] | undefined {
    const since = this.#history.after(revision);
    if (since === undefined) return undefined;
    const then = new Map<string, StoredObject | undefined>();
    for (const event of since) {
      if (event.key.startsWith(prefix) && !then.has(event.key)) then.set(event.key, event.previous);
    }
    if (then.size === 0) return this.list(prefix);
    const unchanged = this.list(prefix).filter(({ key }) => !then.has(key));
    const changed = [...then.values()].filter((object) => object !== undefined);
    return [...unchanged, ...changed].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Returns the writes after `revision`; undefined if some of them are compacted. */
  eventsAfter(revision: number): StoreEvent[] | undefined {
    return this.#history.after(revision);
  }

  /** Revisions of the versions that the objects or the history still need. */
  get neededRevisions(): number[] {
    return [...[...this.#objects.values()].map(({ revision }) => revision), ...supersededBy(this.#history.events)];
  }

  /** Calls `next` synchronously with every write, even if it is not visible yet, until the returned function is called. */
  follow(next: (event: StoreEvent) => void): () => void {
    this.#followers.add(next);
    return () => this.#followers.delete(next);
  }

  /**
   * Notifies `subscriber` of every write when it becomes visible, including earlier ones that are not visible yet, until the returned function is
   * called.
   */
  subscribe(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  /** Compacts the history up to `revision`; returns the removed events. */
  compact(revision: number): readonly StoreEvent[] {
    return this.#history.compact(revision);
  }

  /** Restores a write of an earlier run; a compacted one is not added to the history. */
  restore(write: { revision: number; key: string; json: string | undefined }): void {
    const { revision, key, json } = write;
    const previous = this.#objects.get(key);
    const current = json === undefined ? undefined : new StoredObject(key, json, revision);
    this.#replace(key, current);
    if (revision > this.compacted) this.#history.push(new StoreEvent({ revision, key, previous, current }));
  }

  /** Notifies the subscribers of a write. */
  show(event: StoreEvent): void {
    for (const subscriber of this.#subscribers) this.#tell(subscriber, event);
  }

  endWatches(): void {
    for (const subscriber of [...this.#subscribers]) subscriber.end();
    this.#subscribers.clear();
  }

  // A subscriber that throws has missed an event, so it is ended and has to restart. The write itself is not affected.
  #tell(subscriber: Subscriber, event: StoreEvent): void {
    try {
      subscriber.next(event);
    } catch {
      this.#subscribers.delete(subscriber);
      subscriber.end();
    }
  }

  #replace(key: string, current: StoredObject | undefined): void {
    this.#version++;
    if (current === undefined) {
      this.#objects.delete(key);
      this.#keys.delete(key);
      return;
    }
    if (!this.#objects.has(key)) this.#keys.add(key);
    this.#objects.set(key, current);
  }

  #announce(event: StoreEvent): void {
    const forgotten = this.#history.push(event);
    for (const follow of this.#followers) follow(event);
    this.#shared.written(this, event, forgotten);
  }
}

/** Returns the revisions of versions that are unneeded once these events leave the history: the previous versions, and the deletions themselves. */
function supersededBy(events: readonly StoreEvent[]): number[] {
  return events.flatMap(({ revision, previous, current }) => [
    ...(previous === undefined ? [] : [previous.revision]),
    ...(current === undefined ? [revision] : []),
  ]);
}

/** A write with the old and new object; one of them is undefined for a create or a delete. */
export class StoreEvent {
  readonly revision: number;
  readonly key: string;
  readonly previous: StoredObject | undefined;
  readonly current: StoredObject | undefined;
  #departed: StoredObject | undefined;

  constructor(write: {
    revision: number;
    key: string;
    previous: StoredObject | undefined;
    current: StoredObject | undefined;
  }) {
    this.revision = write.revision;
    this.key = write.key;
    this.previous = write.previous;
    this.current = write.current;
  }

  /** The old object with the revision of the write, as in DELETED events. Computed on first use. */
  get departed(): StoredObject | undefined {
    return (this.#departed ??= this.previous?.at(this.revision));
  }
}

const NONE: readonly StoreEvent[] = [];

/** The latest writes to a resource, oldest first, up to a limit; older ones are compacted. */
class History {
  readonly #limit: number;
  #events: StoreEvent[] = [];
  #start = 0;
  #compacted: number;

  constructor(options: { limit: number; compacted: number }) {
    this.#limit = options.limit;
    this.#compacted = options.compacted;
  }

  /** The newest compacted revision; the history after it is complete. */
  get compacted(): number {
    return this.#compacted;
  }

  /** The events in the history, oldest first. */
  get events(): readonly StoreEvent[] {
    return this.#events.slice(this.#start);
  }

  /** Appends an event; returns the events that exceed the limit. */
  push(event: StoreEvent): readonly StoreEvent[] {
    this.#events.push(event);
    return this.#events.length - this.#start > this.#limit ? this.#dropUntil(this.#start + 1) : NONE;
  }

  /** Returns the events after `revision`; undefined if some of them are compacted. */
  after(revision: number): StoreEvent[] | undefined {
    if (revision < this.#compacted) return undefined;
    return this.#events.slice(this.#indexAfter(revision));
  }

  /** Removes and returns the events up to `revision`. */
  compact(revision: number): readonly StoreEvent[] {
    const dropped = this.#dropUntil(this.#indexAfter(revision));
    this.#compacted = Math.max(this.#compacted, revision);
    return dropped;
  }

  #dropUntil(index: number): readonly StoreEvent[] {
    const dropped = this.#events.slice(this.#start, index);
    if (index > this.#start) this.#compacted = (this.#events[index - 1] as StoreEvent).revision;
    this.#start = index;
    // Dropping the prefix only occasionally keeps an append O(1) on average.
    if (this.#start > this.#limit) {
      this.#events = this.#events.slice(this.#start);
      this.#start = 0;
    }
    return dropped;
  }

  #indexAfter(revision: number): number {
    let low = this.#start;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle] as StoreEvent).revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * A sorted set of keys.
 *
 * An insertion moves the tail of an array, which is faster than a tree up to some hundred thousand keys; a range needs a binary search. Kubernetes
 * orders by the bytes of `namespace/name`; names are ASCII, so string comparison yields the same order.
 */
class SortedKeys {
  readonly #keys: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  /** Adds a key; no effect if it exists. */
  add(key: string): void {
    const index = this.#firstNotBelow(key);
    if (this.#keys[index] === key) return;
    // Objects are often created in key order, which needs no splice.
    if (index === this.#keys.length) this.#keys.push(key);
    else this.#keys.splice(index, 0, key);
  }

  /** Removes a key; no effect if it does not exist. */
  delete(key: string): void {
    const index = this.#firstNotBelow(key);
    if (this.#keys[index] === key) this.#keys.splice(index, 1);
  }

  /** Returns the keys with the prefix, in order. */
  withPrefix(prefix: string): string[] {
    if (prefix === "") return this.#keys.slice();
    return this.#keys.slice(this.#firstNotBelow(prefix), this.#firstNotBelow(endOfPrefix(prefix)));
  }

  #firstNotBelow(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function endOfPrefix(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** A change to persist. */
export interface Change {
  /** The current revision of the store. */
  readonly revision: number;
  /** The new version of an object; without JSON the object is deleted. */
  readonly write?: { readonly resource: string; readonly key: string; readonly json: string | undefined };
  /** Revisions of versions that are no longer needed. */
  readonly forgotten: readonly number[];
  /** The new compacted revision of a resource, if it has changed. */
  readonly compacted?: { readonly resource: string; readonly revision: number } | undefined;
}

/** Persists changes in order. After a crash, a prefix of the changes is restored; changes of one turn of the event loop are atomic. */
export interface Journal {
  /** Appends a change; it is durable when the current `pending` is fulfilled. */
  append(change: Change): void;
  /** Fulfilled when all appended changes are durable, rejected if a write failed; undefined if there is nothing to wait for. */
  readonly pending: Promise<void> | undefined;
  /** Calls `listener` with the newest durable revision, each time it changes. */
  onDurable(listener: (revision: number) => void): void;
}

// Number of objects cached as parsed values; a value takes three times as much memory as its JSON.
const MAX_VALUES = 1024;

/**
 * An immutable version of an object, so that watches, pages, and caches can share it.
 *
 * The JSON is kept; the parsed value is dropped if it was not used recently, and parsed again when needed.
 */
export class StoredObject {
  readonly key: string;
  readonly revision: number;
  #object: JsonObject | undefined;
  #json: string | undefined;
  /** Sources of the 64-bit integers in the JSON. */
  readonly #sources: readonly LongIntegers[];
  /** Computed on first use, because most objects have none. */
  #integers: LongIntegers | undefined | "unknown";

  /** `sources` provides 64-bit integers that the parsed value has rounded. */
  constructor(key: string, content: JsonObject | string, revision: number, sources: readonly LongIntegers[] = []) {
    this.key = key;
    this.revision = revision;
    this.#sources = sources;
    this.#integers = typeof content === "string" || sources.length > 0 ? "unknown" : undefined;
    if (typeof content === "string") this.#json = content;
    else this.#object = content;
  }

  /** The parsed object. */
  get object(): JsonObject {
    if (this.#object === undefined) {
      const json = this.#json as string;
      this.#object = this.#integers === undefined ? (JSON.parse(json) as JsonObject) : parseRounded(json);
      this.#keepValue();
    }
    return this.#object;
  }

  /** The object as JSON, encoded once per version. */
  get json(): string {
    if (this.#json === undefined) {
      const object = this.#object as JsonObject;
      const sources = this.#sources;
      this.#json = inOnePiece(sources.length === 0 ? JSON.stringify(object) : exactTextOf(object, sources));
      this.#keepValue();
    }
    return this.#json;
  }

  /** Integers that the parsed object has rounded. */
  get integers(): LongIntegers | undefined {
    if (this.#integers === "unknown") this.#integers = LongIntegers.inJson(this.json);
    return this.#integers;
  }

  /** The parsed object with these integers as bigints, for output. */
  get exactObject(): JsonObject {
    const { integers, object } = this;
    return integers === undefined ? object : withLongIntegers(object, [integers]);
  }

  /** Returns this version with another form of the object; integers of `sources` take precedence. */
  as(object: JsonObject, sources: readonly LongIntegers[] = []): StoredObject {
    return new StoredObject(this.key, object, this.revision, withThose(sources, this));
  }

  /** Returns this state with another revision, as in DELETED events. */
  at(revision: number): StoredObject {
    const object = withResourceVersion(this.object, revision);
    return new StoredObject(this.key, object, revision, withThose([], this));
  }

  // Called when both forms are present; drops the value of the oldest cached object.
  #keepValue(): void {
    const oldest = withValues[next];
    withValues[next] = this;
    next = (next + 1) % MAX_VALUES;
    if (oldest !== undefined) oldest.#object = undefined;
  }
}

/** Appends the integers of a stored object to `sources`. */
function withThose(sources: readonly LongIntegers[], stored: StoredObject | undefined): readonly LongIntegers[] {
  const integers = stored?.integers;
  return integers === undefined ? sources : [...sources, integers];
}

// V8 represents a concatenation as a rope, which takes more memory; reading the string flattens it.
function inOnePiece(text: string): string {
  Number(text);
  return text;
}

const withValues: StoredObject[] = [];
let next = 0;

/** Returns a shallow copy of `object` with `revision` as its resourceVersion. */
export function withResourceVersion(object: JsonObject, revision: number): JsonObject {
  return { ...object, metadata: { ...(object["metadata"] as JsonObject), resourceVersion: String(revision) } };
}
