/** The objects of one resource. */
import { plainError } from "../errors/status-error.js";
import type { JsonObject } from "../json.js";
import { StoreEvent, type History } from "./history.js";
import { SortedKeys } from "./sorted-keys.js";
import { StoredObject, withResourceVersion } from "./stored-object.js";

/** Receives every write to a resource that may be shown; `end` is called when the resource goes away or its watches are closed. */
export interface Subscriber {
  next(event: StoreEvent): void;
  end(): void;
}

/** What the resources of one store share. */
export interface SharedState {
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

  /** Creates or replaces an object under a new revision, which becomes its resourceVersion. Throws a StatusError for one that is too large. */
  put(key: string, object: JsonObject): StoredObject {
    const next = this.#shared.current() + 1;
    const current = new StoredObject(key, withResourceVersion(object, next), next);
    checkSize(current);
    const revision = this.#shared.next();
    const previous = this.#objects.get(key);
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
export function supersededBy(events: readonly StoreEvent[]): number[] {
  return events.flatMap(({ revision, previous, current }) => [
    ...(previous === undefined ? [] : [previous.revision]),
    ...(current === undefined ? [revision] : []),
  ]);
}
