/**
 * The objects of the server, in memory.
 *
 * One revision counter is shared by all resources, as in etcd. A resource keeps its objects under `namespace/name` (or `name`)
 * in order, remembers its latest writes, and tells subscribers of every write before the write returns. Reading at an older
 * revision undoes the remembered writes, so pages of a list are consistent without copies of the whole.
 */
import { plainError } from "../errors/status-error.js";
import type { JsonObject } from "../json.js";
import { eventOf, History, type StoreEvent } from "./history.js";
import { SortedKeys } from "./sorted-keys.js";
import { StoredObject, withResourceVersion } from "./stored-object.js";

const FIRST_REVISION = 1000;
const DEFAULT_HISTORY_LIMIT = 10_000;

/** Receives every write to a resource; `end` is called when the resource goes away or its watches are closed. */
export interface Subscriber {
  next(event: StoreEvent): void;
  end(): void;
}

/** All resources of a server under one revision counter. */
export class Store {
  readonly #resources = new Map<string, ResourceStore>();
  readonly #historyLimit: number;
  #revision = FIRST_REVISION;

  constructor(options: { historyLimit?: number | undefined } = {}) {
    this.#historyLimit = options.historyLimit ?? DEFAULT_HISTORY_LIMIT;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Returns the store of a resource, for example `widgets.example.com`, and makes it on first use. */
  resource(name: string, options: { compacted?: number } = {}): ResourceStore {
    let resource = this.#resources.get(name);
    if (resource === undefined) {
      const counter = { current: () => this.#revision, next: () => ++this.#revision };
      const history = new History({ limit: this.#historyLimit, compacted: options.compacted ?? 0 });
      this.#resources.set(name, (resource = new ResourceStore(counter, history)));
    }
    return resource;
  }

  /** Forgets a resource and ends its watches. */
  drop(name: string): void {
    this.#resources.get(name)?.endWatches();
    this.#resources.delete(name);
  }

  /** Forgets the history of every resource, as a compaction of etcd would. */
  compact(): void {
    // The revision moves on, so that a client that has seen everything so far is too old as well.
    const revision = ++this.#revision;
    for (const resource of this.#resources.values()) resource.compact(revision);
  }

  /** Ends all watches; clients may start them again. */
  endWatches(): void {
    for (const resource of this.#resources.values()) resource.endWatches();
  }
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

/** The objects of one resource. */
export class ResourceStore {
  readonly #counter: { current(): number; next(): number };
  readonly #history: History;
  readonly #objects = new Map<string, StoredObject>();
  readonly #keys = new SortedKeys();
  readonly #subscribers = new Set<Subscriber>();

  constructor(counter: { current(): number; next(): number }, history: History) {
    this.#counter = counter;
    this.#history = history;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** The newest revision of the whole store. */
  get revision(): number {
    return this.#counter.current();
  }

  /** The newest revision that is compacted. */
  get compacted(): number {
    return this.#history.compacted;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /** Creates or replaces an object under a new revision, which becomes its resourceVersion. Throws a StatusError for one that is too large. */
  put(key: string, object: JsonObject): StoredObject {
    const next = this.#counter.current() + 1;
    const current = new StoredObject(key, withResourceVersion(object, next), next);
    checkSize(current);
    const revision = this.#counter.next();
    const previous = this.#objects.get(key);
    this.#objects.set(key, current);
    if (previous === undefined) this.#keys.add(key);
    this.#announce(eventOf({ revision, key, previous, current }));
    return current;
  }

  /** Removes an object and returns its last state at the revision of the removal. */
  remove(key: string): StoredObject | undefined {
    const previous = this.#objects.get(key);
    if (previous === undefined) return undefined;
    this.#objects.delete(key);
    this.#keys.delete(key);
    const event = eventOf({ revision: this.#counter.next(), key, previous, current: undefined });
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

  /** Tells `subscriber` of every write from now on, until the returned function is called. */
  subscribe(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  /** Forgets the writes up to `revision`. */
  compact(revision: number): void {
    this.#history.compact(revision);
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

  #announce(event: StoreEvent): void {
    this.#history.push(event);
    for (const subscriber of this.#subscribers) this.#tell(subscriber, event);
  }
}
