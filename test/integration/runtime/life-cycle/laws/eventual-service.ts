// A service outside Kubernetes whose answers lag behind what was done, as those of a cloud, and miss resources now and then.

/** A resource of the service. */
export interface Resource {
  readonly id: string;
  readonly owner: string;
  /** The key of the item, if the owner has several. */
  readonly item: string;
  readonly value: string;
}

interface Kept {
  readonly resource: Resource;
  /** What it was from when on; undefined once it is deleted. */
  readonly versions: { readonly at: number; readonly resource: Resource | undefined }[];
}

/** Answers reads with the state of `lagMs` ago, and gives the ids. */
export class EventualService {
  lagMs: number;
  /** How many of the next reads find nothing. */
  misses = 0;
  /** Every change that was asked for: verb and id. */
  readonly changes: string[] = [];
  readonly #kept = new Map<string, Kept>();
  #next = 0;

  constructor({ lagMs = 0 } = {}) {
    this.lagMs = lagMs;
  }

  /** The resources that there are, whatever reads show. */
  get resources(): readonly Resource[] {
    return [...this.#kept.values()].flatMap(({ versions }) => versions.at(-1)!.resource ?? []);
  }

  /** Names what there is more than once. */
  get duplicates(): readonly string[] {
    const keys = this.resources.map(({ owner, item }) => `${owner}[${item}]`);
    return [...new Set(keys.filter((key, index) => keys.indexOf(key) !== index))];
  }

  create(draft: Omit<Resource, "id">): Resource {
    const resource = { ...draft, id: `r-${++this.#next}` };
    this.changes.push(`create ${resource.id}`);
    this.#kept.set(resource.id, { resource, versions: [{ at: performance.now(), resource }] });
    return resource;
  }

  update(id: string, value: string): Resource {
    this.changes.push(`update ${id}`);
    const { versions } = this.#keptOf(id);
    const resource = { ...this.#keptOf(id).resource, value };
    versions.push({ at: performance.now(), resource });
    return resource;
  }

  delete(id: string): void {
    this.changes.push(`delete ${id}`);
    this.#kept.get(id)?.versions.push({ at: performance.now(), resource: undefined });
  }

  list(owner: string): Resource[] {
    if (this.#isMiss()) return [];
    return [...this.#kept.values()].flatMap((kept) => (kept.resource.owner === owner ? this.#seen(kept) : []));
  }

  get(id: string): Resource | undefined {
    const kept = this.#isMiss() ? undefined : this.#kept.get(id);
    return kept === undefined ? undefined : this.#seen(kept)[0];
  }

  #isMiss(): boolean {
    if (this.misses === 0) return false;
    this.misses--;
    return true;
  }

  #seen({ versions }: Kept): Resource[] {
    const until = performance.now() - this.lagMs;
    const seen = versions.findLast(({ at }) => at <= until)?.resource;
    return seen === undefined ? [] : [seen];
  }

  #keptOf(id: string): Kept {
    const kept = this.#kept.get(id);
    if (kept?.versions.at(-1)!.resource === undefined) throw new Error(`there is no resource ${id}`);
    return kept;
  }
}
