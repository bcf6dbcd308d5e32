/**
 * The objects of the server, in memory.
 *
 * One revision counter is shared by all resources, as in etcd. A resource keeps its objects under `namespace/name` (or `name`)
 * in order, remembers its latest writes, and tells subscribers of every write before the write returns. Reading at an older
 * revision undoes the remembered writes, so pages of a list are consistent without copies of the whole.
 *
 * With a journal a write is told to it before the write returns, and to subscribers once it is durable.
 */
import { plainError } from "../errors/status-error.js";
import { LongIntegers, exactTextOf, parseRounded, withLongIntegers } from "../exact-numbers.js";
import type { JsonObject } from "../json.js";

const FIRST_REVISION = 1000;
const DEFAULT_HISTORY_LIMIT = 10_000;

/** A version of an object that was kept; a deletion has no text. */
export interface StoredWrite {
  readonly revision: number;
  readonly resource: string;
  readonly key: string;
  readonly json: string | undefined;
}

/** What an earlier run of a server has left. */
export interface StoredState {
  readonly revision: number;
  /** Up to which revision the history of a resource is gone. */
  readonly compacted: ReadonlyMap<string, number>;
  /** In the order of the revisions. */
  readonly writes: readonly StoredWrite[];
}

/** All resources of a server under one revision counter. */
export class Store {
  readonly #resources = new Map<string, ResourceStore>();
  readonly #historyLimit: number;
  readonly #shared: SharedState;
  #revision = FIRST_REVISION;
  #journal: Journal | undefined;
  /** The writes that are not durable yet, oldest first. */
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

  /** Returns the store of a resource, for example `widgets.example.com`, and makes it on first use. */
  resource(name: string, options: { compacted?: number } = {}): ResourceStore {
    let resource = this.#resources.get(name);
    if (resource === undefined) {
      const history = new History({ limit: this.#historyLimit, compacted: options.compacted ?? 0 });
      this.#resources.set(name, (resource = new ResourceStore(name, this.#shared, history)));
    }
    return resource;
  }

  /** Takes over what an earlier run has left; before the first write. */
  restore(state: StoredState): void {
    for (const [name, compacted] of state.compacted) this.resource(name).compact(compacted);
    for (const { resource, ...write } of state.writes) this.resource(resource).restore(write);
    this.#revision = Math.max(this.#revision, state.revision);
  }

  /** Makes every write from now on durable. */
  attach(journal: Journal): void {
    this.#journal = journal;
    journal.onDurable((revision) => this.#show(revision));
  }

  /** Forgets a resource and ends its watches. */
  drop(name: string): void {
    const resource = this.#resources.get(name);
    if (resource === undefined) return;
    resource.endWatches();
    this.#resources.delete(name);
    const forgotten = resource.neededRevisions;
    // A resource of that name begins anew.
    this.#journal?.append({ revision: this.#revision, forgotten, compacted: { resource: name, revision: 0 } });
  }

  /** Forgets the history of every resource, as a compaction of etcd would, or only of one of them. */
  compact(only?: ResourceStore): void {
    // The revision moves on, so that a client that has seen everything so far is too old as well.
    const revision = ++this.#revision;
    // Also where there is nothing to forget: a revision never goes back.
    this.#journal?.append({ revision, forgotten: [] });
    for (const resource of only === undefined ? this.#resources.values() : [only]) {
      const forgotten = supersededBy(resource.compact(revision));
      this.#journal?.append({ revision, forgotten, compacted: { resource: resource.name, revision } });
    }
  }

  /** Ends all watches; clients may start them again. */
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

/** The objects of one resource. */

/** Receives every write to a resource that may be shown; `end` is called when the resource goes away or its watches are closed. */
interface Subscriber {
  next(event: StoreEvent): void;
  end(): void;
}

/** What the resources of one store share. */
interface SharedState {
  current(): number;
  next(): number;
  /** The newest revision up to which every write may be shown. */
  shown(): number;
  /** Told of a write and of the writes that are forgotten for it; tells the resource when its subscribers may know. */
  written(resource: ResourceStore, event: StoreEvent, forgotten: readonly StoreEvent[]): void;
}

// etcd's --max-request-bytes, and the limit of messages that its client sends.
const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

function checkSize({ json }: StoredObject): void {
  // A character takes three bytes at most.
  if (json.length * 3 <= MAX_OBJECT_BYTES) return;
  const bytes = Buffer.byteLength(json);
  if (bytes > MAX_MESSAGE_BYTES)
    throw plainError(
      `rpc error: code = ResourceExhausted desc = trying to send message larger than max (${bytes} vs. ${MAX_MESSAGE_BYTES})`,
    );
  if (bytes > MAX_OBJECT_BYTES) throw plainError("etcdserver: request is too large");
}

/** The objects of one resource, and their latest writes. */
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

  /** The newest revision of the whole store. */
  get revision(): number {
    return this.#shared.current();
  }

  /** Grows with every write to this resource: what was computed from its objects holds until then. */
  get version(): number {
    return this.#version;
  }

  /** The newest revision of the whole store up to which every write may be shown: what a bookmark tells. */
  get shownRevision(): number {
    return this.#shared.shown();
  }

  /** The newest revision that is compacted. */
  get compacted(): number {
    return this.#history.compacted;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /**
   * Creates or replaces an object under a new revision, which becomes its resourceVersion. Integers that JavaScript rounds are taken from
   * `sources`, then from the object that is replaced. Throws a StatusError if the object is too large.
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

  /** Removes an object and returns its last state at the revision of the removal. */
  remove(key: string): StoredObject | undefined {
    const previous = this.#objects.get(key);
    if (previous === undefined) return undefined;
    this.#replace(key, undefined);
    const event = new StoreEvent({ revision: this.#shared.next(), key, previous, current: undefined });
    this.#announce(event);
    return event.departed;
  }

  /** Returns the objects below `prefix` in the order of their keys. */
  list(prefix: string): StoredObject[] {
    return this.#keys.withPrefix(prefix).map((key) => this.#objects.get(key) as StoredObject);
  }

  /** Returns what `list` returned at an older revision; undefined when that is compacted. */
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

  /** Returns the writes after `revision`; undefined when some of them are compacted. */
  eventsAfter(revision: number): StoreEvent[] | undefined {
    return this.#history.after(revision);
  }

  /** The revisions of the versions that are still needed: by the objects, and by what is remembered of their writes. */
  get neededRevisions(): number[] {
    return [...[...this.#objects.values()].map(({ revision }) => revision), ...supersededBy(this.#history.events)];
  }

  /** Calls `next` with every write within its turn, also before it may be shown, until the returned function is called. */
  follow(next: (event: StoreEvent) => void): () => void {
    this.#followers.add(next);
    return () => this.#followers.delete(next);
  }

  /**
   * Tells `subscriber` of every write from now on, when it may be shown, until the returned function is called. Writes from before that could
   * not be shown yet are told, too.
   */
  subscribe(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  /** Forgets the writes up to `revision`, and returns those that were remembered. */
  compact(revision: number): readonly StoreEvent[] {
    return this.#history.compact(revision);
  }

  /** Takes over a write of an earlier run; one that is compacted changes the objects only. */
  restore(write: { revision: number; key: string; json: string | undefined }): void {
    const { revision, key, json } = write;
    const previous = this.#objects.get(key);
    const current = json === undefined ? undefined : new StoredObject(key, json, revision);
    this.#replace(key, current);
    if (revision > this.compacted) this.#history.push(new StoreEvent({ revision, key, previous, current }));
  }

  /** Tells the subscribers of a write. */
  show(event: StoreEvent): void {
    for (const subscriber of this.#subscribers) this.#tell(subscriber, event);
  }

  /** Ends all watches of this resource. */
  endWatches(): void {
    for (const subscriber of [...this.#subscribers]) subscriber.end();
    this.#subscribers.clear();
  }

  // A subscriber that fails has lost an event, so it is ended and may start again; the write is stored, whatever it does.
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

/** Returns the revisions of the versions that nobody needs when these writes are forgotten: what was before them, and deletions themselves. */
function supersededBy(events: readonly StoreEvent[]): number[] {
  return events.flatMap(({ revision, previous, current }) => [
    ...(previous === undefined ? [] : [previous.revision]),
    ...(current === undefined ? [revision] : []),
  ]);
}

/** One write: what was there before and what is there now; one of the two is missing for creations and deletions. */
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

  /** The state before the write at the revision of the write, which is what DELETED events carry. Rarely needed, so made when it is. */
  get departed(): StoredObject | undefined {
    return (this.#departed ??= this.previous?.at(this.revision));
  }
}

const NONE: readonly StoreEvent[] = [];

/** The latest writes to one resource, in order, up to a limit; older ones are compacted away. */
class History {
  readonly #limit: number;
  #events: StoreEvent[] = [];
  #start = 0;
  #compacted: number;

  constructor(options: { limit: number; compacted: number }) {
    this.#limit = options.limit;
    this.#compacted = options.compacted;
  }

  /** The newest revision whose event is gone; what happened after it is known completely. */
  get compacted(): number {
    return this.#compacted;
  }

  /** The writes that are remembered, oldest first. */
  get events(): readonly StoreEvent[] {
    return this.#events.slice(this.#start);
  }

  /** Appends the newest write; returns the writes that are forgotten for it. */
  push(event: StoreEvent): readonly StoreEvent[] {
    this.#events.push(event);
    return this.#events.length - this.#start > this.#limit ? this.#dropUntil(this.#start + 1) : NONE;
  }

  /** Returns the writes after `revision`; undefined when some of them are compacted. */
  after(revision: number): StoreEvent[] | undefined {
    if (revision < this.#compacted) return undefined;
    return this.#events.slice(this.#indexAfter(revision));
  }

  /** Forgets every write up to `revision`, and returns those that it had. */
  compact(revision: number): readonly StoreEvent[] {
    const dropped = this.#dropUntil(this.#indexAfter(revision));
    this.#compacted = Math.max(this.#compacted, revision);
    return dropped;
  }

  #dropUntil(index: number): readonly StoreEvent[] {
    const dropped = this.#events.slice(this.#start, index);
    if (index > this.#start) this.#compacted = (this.#events[index - 1] as StoreEvent).revision;
    this.#start = index;
    // Moving the rest only now and then keeps an append cheap.
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
 * A set of keys that is always in order.
 *
 * Insertion moves the tail of one array, which stays cheaper than a tree up to some hundred thousand keys; a range costs a
 * binary search. Kubernetes orders by the bytes of `namespace/name`; names are ASCII, so comparing strings does the same.
 */
class SortedKeys {
  readonly #keys: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  /** Adds a key that may be there already. */
  add(key: string): void {
    const index = this.#firstNotBelow(key);
    if (this.#keys[index] === key) return;
    // Objects are often created in order, and then no search result has to be shifted.
    if (index === this.#keys.length) this.#keys.push(key);
    else this.#keys.splice(index, 0, key);
  }

  /** Removes a key that may be missing. */
  delete(key: string): void {
    const index = this.#firstNotBelow(key);
    if (this.#keys[index] === key) this.#keys.splice(index, 1);
  }

  /** Returns the keys that start with `prefix`, in order. */
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

/** A change of what has to be kept. */
export interface Change {
  /** The newest revision of the store. */
  readonly revision: number;
  /** The new version of an object; without its JSON the object is deleted. */
  readonly write?: { readonly resource: string; readonly key: string; readonly json: string | undefined };
  /** The revisions of versions that nobody needs any more. */
  readonly forgotten: readonly number[];
  /** Up to which revision the history of a resource is gone, if that has changed. */
  readonly compacted?: { readonly resource: string; readonly revision: number } | undefined;
}

/** Makes changes durable in their order: after a crash all of them are there up to one of them, and what one turn wrote is there as a whole. */
export interface Journal {
  /** Takes a change; it is durable once the promise `pending` of that time is fulfilled. */
  append(change: Change): void;
  /** Fulfilled when everything that was taken is durable, rejected if it cannot be; undefined if it is durable already. */
  readonly pending: Promise<void> | undefined;
  /** Calls `listener` with the newest revision that is durable, each time that there is one. */
  onDurable(listener: (revision: number) => void): void;
}

// As many objects are kept as values beside their text: a value takes three times as much memory.
const MAX_VALUES = 1024;

/**
 * One version of one object. Nobody changes it, so that watches, pages and caches may share it.
 *
 * Its text stays; the value of one that was not used lately is parsed anew when it is needed.
 */
export class StoredObject {
  readonly key: string;
  readonly revision: number;
  #object: JsonObject | undefined;
  #json: string | undefined;
  /** Where the text has its long integers from. */
  readonly #sources: readonly LongIntegers[];
  /** Computed on first use, because most objects have none. */
  #integers: LongIntegers | undefined | "unknown";

  /** `sources` have the integers that a value lost. */
  constructor(key: string, content: JsonObject | string, revision: number, sources: readonly LongIntegers[] = []) {
    this.key = key;
    this.revision = revision;
    this.#sources = sources;
    this.#integers = typeof content === "string" || sources.length > 0 ? "unknown" : undefined;
    if (typeof content === "string") this.#json = content;
    else this.#object = content;
  }

  /** The object as a value. */
  get object(): JsonObject {
    if (this.#object === undefined) {
      const json = this.#json as string;
      this.#object = this.#integers === undefined ? (JSON.parse(json) as JsonObject) : parseRounded(json);
      this.#keepValue();
    }
    return this.#object;
  }

  /** The object as JSON text, serialised once per version. */
  get json(): string {
    if (this.#json === undefined) {
      const object = this.#object as JsonObject;
      const sources = this.#sources;
      this.#json = inOnePiece(sources.length === 0 ? JSON.stringify(object) : exactTextOf(object, sources));
      this.#keepValue();
    }
    return this.#json;
  }

  /** The integers of the object that its value has rounded. */
  get integers(): LongIntegers | undefined {
    if (this.#integers === "unknown") this.#integers = LongIntegers.inJson(this.json);
    return this.#integers;
  }

  /** The object as a value in which those integers are bigints, for who prints it. */
  get exactObject(): JsonObject {
    const { integers, object } = this;
    return integers === undefined ? object : withLongIntegers(object, [integers]);
  }

  /** Returns the same version of the object in another form, in which the integers of `sources` come first. */
  as(object: JsonObject, sources: readonly LongIntegers[] = []): StoredObject {
    return new StoredObject(this.key, object, this.revision, withThose(sources, this));
  }

  /** Returns the same state as seen at another revision, which is what the events of deleted objects show. */
  at(revision: number): StoredObject {
    const object = withResourceVersion(this.object, revision);
    return new StoredObject(this.key, object, revision, withThose([], this));
  }

  // Called when both forms are there: the value of the oldest one goes.
  #keepValue(): void {
    const oldest = withValues[next];
    withValues[next] = this;
    next = (next + 1) % MAX_VALUES;
    if (oldest !== undefined) oldest.#object = undefined;
  }
}

/** Appends the integers of a stored object to the sources. */
function withThose(sources: readonly LongIntegers[], stored: StoredObject | undefined): readonly LongIntegers[] {
  const integers = stored?.integers;
  return integers === undefined ? sources : [...sources, integers];
}

// V8 makes a text of several pieces, which take more memory. It joins them when it has to look at the text.
function inOnePiece(text: string): string {
  Number(text);
  return text;
}

const withValues: StoredObject[] = [];
let next = 0;

/** Returns a shallow copy of `object` that carries `revision` as its resourceVersion. */
export function withResourceVersion(object: JsonObject, revision: number): JsonObject {
  return { ...object, metadata: { ...(object["metadata"] as JsonObject), resourceVersion: String(revision) } };
}
