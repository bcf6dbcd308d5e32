// A service outside Kubernetes that is eventually consistent, in memory: what it lists lags behind what it did, and a list may be empty once.
import type { Clock } from "#runtime/base/wait.js";
import { VirtualClock } from "./virtual-clock.js";

/** A resource of the service. */
export interface EventualResource {
  readonly id: string;
  /** Whose it is, such as the key of a primary. */
  readonly owner: string;
  /** The item that it is for; by it duplicates are found. */
  readonly item: string;
  readonly value: string;
}

/** What a caller states of a resource; the service gives the id unless the caller does. */
export type EventualDraft = Omit<EventualResource, "id"> & { readonly id?: string };

interface EventualServiceOptions {
  /** Default: a clock of its own, which `advance` moves */
  readonly clock?: Clock;
  /** How far lists, and reads by id, lag behind at most. Default: 0 */
  readonly lagMs?: number;
  /** Returns a number from 0 to 1: by which part of `lagMs` the next read lags. Default: 1, the most */
  readonly random?: () => number;
  /** Whether a creation with a token that was used returns the resource that it made. Default: true */
  readonly knowsTokens?: boolean;
}

interface Change {
  readonly at: number;
  readonly id: string;
  /** Absent for a deletion. */
  readonly resource: EventualResource | undefined;
}

/** An eventually consistent service. What it has is `resources`; what it shows are `list` and `get`. */
export class EventualService {
  readonly clock: Clock;
  lagMs: number;
  /** How many of the next reads show nothing at all; never two in a row. */
  misses = 0;
  /** How often resources were created, updated and deleted. */
  readonly counts = { creates: 0, updates: 0, deletes: 0 };
  /** The creations of an item of which a resource existed already, as `owner/item`. */
  readonly duplicates: string[] = [];
  /** Called when a resource was created, before the caller hears of it; what it throws is the answer. */
  onCreated: (resource: EventualResource) => void = () => {};
  readonly #options: EventualServiceOptions;
  readonly #changes: Change[] = [];
  readonly #resources = new Map<string, EventualResource>();
  readonly #tokens = new Map<string, string>();
  #ids = 0;
  #hasMissed = false;
  /** What was shown once is shown from then on, but for a miss. */
  #seenAt = -Infinity;

  constructor(options: EventualServiceOptions = {}) {
    this.#options = options;
    this.clock = options.clock ?? new VirtualClock();
    this.lagMs = options.lagMs ?? 0;
  }

  /** What the service really has, by id. */
  get resources(): ReadonlyMap<string, EventualResource> {
    return this.#resources;
  }

  /** Lists the resources of an owner, or all, as they were a while ago. */
  list(owner?: string): EventualResource[] {
    return this.#seen().filter((each) => owner === undefined || each.owner === owner);
  }

  /** Reads a resource as it was a while ago. */
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

  /** Changes a resource; throws if there is none. */
  update(id: string, draft: Partial<Omit<EventualResource, "id">>): EventualResource {
    const known = this.#resources.get(id);
    if (known === undefined) throw new Error(`there is no resource ${id}`);
    const resource = { ...known, ...draft };
    this.counts.updates++;
    this.#store(id, resource);
    return resource;
  }

  /** Deletes a resource; one that is gone already is deleted. */
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
      // Without a lag, what was done in this instant is shown.
      if (at > seenAt) continue;
      if (resource === undefined) seen.delete(id);
      else seen.set(id, resource);
    }
    return [...seen.values()];
  }
}
