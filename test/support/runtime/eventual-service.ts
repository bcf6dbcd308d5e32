// An eventually consistent external service in memory: reads lag behind writes, and a list may temporarily be empty.
import type { Clock } from "#runtime/base/wait.js";
import { VirtualClock } from "./virtual-clock.js";

/** A resource of the service. */
export interface EventualResource {
  readonly id: string;
  /** The owner, such as the key of a primary. */
  readonly owner: string;
  /** The item that the resource represents; two resources for the same item are duplicates. */
  readonly item: string;
  readonly value: string;
}

/** The content of a resource. The service generates the id unless it is set. */
export type EventualDraft = Omit<EventualResource, "id"> & { readonly id?: string };

interface EventualServiceOptions {
  /** The clock of the service. Default: a virtual clock, which `advance` moves */
  readonly clock?: Clock;
  /** The maximum lag of lists and reads by id, in ms. Default: 0 */
  readonly lagMs?: number;
  /** Returns the fraction of `lagMs` by which the next read lags, between 0 and 1. Default: 1 */
  readonly random?: () => number;
  /** Whether creating a resource with a known token returns the existing resource. Default: true */
  readonly knowsTokens?: boolean;
}

interface Change {
  readonly at: number;
  readonly id: string;
  /** Undefined for a deletion. */
  readonly resource: EventualResource | undefined;
}

/** An eventually consistent service. `resources` is its actual state; `list` and `get` return the observed state. */
export class EventualService {
  readonly clock: Clock;
  lagMs: number;
  /** The number of upcoming reads that return nothing; two such reads are never consecutive. */
  misses = 0;
  /** The number of resources that were created, updated, and deleted. */
  readonly counts = { creates: 0, updates: 0, deletes: 0 };
  /** The creations of a second resource for an item, as `owner/item`. */
  readonly duplicates: string[] = [];
  /** Called after a resource has been created, before the response; an exception becomes the response. */
  onCreated: (resource: EventualResource) => void = () => {};
  readonly #options: EventualServiceOptions;
  readonly #changes: Change[] = [];
  readonly #resources = new Map<string, EventualResource>();
  readonly #tokens = new Map<string, string>();
  #ids = 0;
  #hasMissed = false;
  /** The time of the state that was last returned. Later reads never return an older state, except if they are misses. */
  #seenAt = -Infinity;

  constructor(options: EventualServiceOptions = {}) {
    this.#options = options;
    this.clock = options.clock ?? new VirtualClock();
    this.lagMs = options.lagMs ?? 0;
  }

  /** The actual resources, by id. */
  get resources(): ReadonlyMap<string, EventualResource> {
    return this.#resources;
  }

  /** Returns the resources of an owner, or all, as of an earlier time. */
  list(owner?: string): EventualResource[] {
    return this.#seen().filter((each) => owner === undefined || each.owner === owner);
  }

  /** Returns a resource as of an earlier time. */
  get(id: string): EventualResource | undefined {
    return this.#seen().find((each) => each.id === id);
  }

  create(draft: EventualDraft, token?: string): EventualResource {
    const known = this.#resources.get(this.#tokens.get(token ?? "") ?? "");
    if (known !== undefined && this.#options.knowsTokens !== false) return known;
    const twin = [...this.#resources.values()].find(({ owner, item }) => owner === draft.owner && item === draft.item);
    if (twin !== undefined) this.duplicates.push(`${draft.owner}/${draft.item}`);
    const resource = { ...draft, id: draft.id ?? `id-${++this.#ids}` };
    if (token !== undefined) this.#tokens.set(token, resource.id);
    this.counts.creates++;
    this.#store(resource.id, resource);
    this.onCreated(resource);
    return resource;
  }

  /** Changes a resource; throws if it does not exist. */
  update(id: string, draft: Partial<Omit<EventualResource, "id">>): EventualResource {
    const known = this.#resources.get(id);
    if (known === undefined) throw new Error(`there is no resource ${id}`);
    const resource = { ...known, ...draft };
    this.counts.updates++;
    this.#store(id, resource);
    return resource;
  }

  /** Deletes a resource; succeeds if it does not exist. */
  delete(id: string): void {
    this.counts.deletes++;
    if (this.#resources.has(id)) this.#store(id, undefined);
  }

  #store(id: string, resource: EventualResource | undefined): void {
    if (resource === undefined) this.#resources.delete(id);
    else this.#resources.set(id, resource);
    this.#changes.push({ at: this.clock.now(), id, resource });
  }

  #seen(): EventualResource[] {
    this.#hasMissed = this.misses > 0 && !this.#hasMissed;
    if (this.#hasMissed) {
      this.misses--;
      return [];
    }
    const { random = () => 1 } = this.#options;
    const seenAt = (this.#seenAt = Math.max(this.#seenAt, this.clock.now() - this.lagMs * random()));
    const seen = new Map<string, EventualResource>();
    for (const { at, id, resource } of this.#changes) {
      // Without a lag, changes of the same instant are visible.
      if (at > seenAt) continue;
      if (resource === undefined) seen.delete(id);
      else seen.set(id, resource);
    }
    return [...seen.values()];
  }
}
