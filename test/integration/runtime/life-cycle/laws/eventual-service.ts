// A service outside Kubernetes whose reads lag behind what was done, as those of a cloud, and miss resources now and then.
import { waitFor } from "#apiserver/wait-for.js";

/** A resource of the service. */
export interface Resource {
  readonly id: string;
  readonly owner: string;
  /** The key of the item, if the owner has several. */
  readonly item: string;
  readonly value: string;
}

/** Gives the ids. Its reads are late from `freeze` on, until they `thaw`; a test needs no clock for it. */
export class EventualService {
  /** Every change that was asked for: verb and id. */
  readonly changes: string[] = [];
  readonly #resources = new Map<string, Resource>();
  #seen: ReadonlyMap<string, Resource> = this.#resources;
  #misses = 0;
  #reads = 0;
  #next = 0;

  /** The resources that there are, whatever reads show. */
  get resources(): readonly Resource[] {
    return [...this.#resources.values()];
  }

  /** Names what there is more than once. */
  get duplicates(): readonly string[] {
    const keys = this.resources.map(({ owner, item }) => `${owner}[${item}]`);
    return [...new Set(keys.filter((key, index) => keys.indexOf(key) !== index))];
  }

  /** Lets reads show the present state from now on, and nothing of what is done later. */
  freeze(): void {
    this.#seen = new Map(this.#resources);
  }

  thaw(): void {
    this.#seen = this.#resources;
  }

  /** Lets the next read find nothing. */
  async miss(): Promise<void> {
    this.#misses++;
    await waitFor("a read found nothing", () => this.#misses === 0, { timeoutMs: 1_000 }).catch(() => {});
  }

  /** Waits until everything was read some times more, or until nobody reads. */
  async untilRead(times = 4): Promise<void> {
    const enough = this.#reads + times * Math.max(1, this.#resources.size);
    await waitFor("it was read", () => this.#reads >= enough, { timeoutMs: 100 }).catch(() => {});
  }

  create(draft: Omit<Resource, "id">): Resource {
    const resource = { ...draft, id: `r-${++this.#next}` };
    this.changes.push(`create ${resource.id}`);
    this.#resources.set(resource.id, resource);
    return resource;
  }

  update(id: string, value: string): Resource {
    this.changes.push(`update ${id}`);
    const before = this.#resources.get(id);
    if (before === undefined) throw new Error(`there is no resource ${id}`);
    const resource = { ...before, value };
    this.#resources.set(id, resource);
    return resource;
  }

  delete(id: string): void {
    this.changes.push(`delete ${id}`);
    this.#resources.delete(id);
  }

  list(owner: string): Resource[] {
    return this.#isMiss() ? [] : [...this.#seen.values()].filter((each) => each.owner === owner);
  }

  get(id: string): Resource | undefined {
    return this.#isMiss() ? undefined : this.#seen.get(id);
  }

  #isMiss(): boolean {
    this.#reads++;
    if (this.#misses === 0) return false;
    this.#misses--;
    return true;
  }
}
