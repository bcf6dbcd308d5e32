/**
 * The objects of the server, in memory.
 *
 * One revision counter is shared by all resources, as in etcd. A resource keeps its objects under `namespace/name` (or `name`)
 * in order, remembers its latest writes, and tells subscribers of every write before the write returns. Reading at an older
 * revision undoes the remembered writes, so pages of a list are consistent without copies of the whole.
 *
 * With a journal a write is told to it before the write returns, and to subscribers once it is durable.
 */
import { History, type StoreEvent } from "./history.js";
import type { Journal } from "./journal.js";
import { ResourceStore, supersededBy, type SharedState } from "./resource-store.js";

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
