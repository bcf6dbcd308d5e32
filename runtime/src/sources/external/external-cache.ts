// What is known of resources outside Kubernetes, by primary and by their own ids (JOSDK ExternalResourceCachingEventSource). The cache takes
// what differs by value, whether or not the gate finds it worth an event. What it returns is a snapshot.
import { isDeepStrictEqual } from "node:util";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { EventGate } from "../filters.js";
import { checkedKeys } from "../mappers.js";

/** Returns the id of a resource, unique among the resources of its primary. */
export type IdOf<Resource> = (resource: Resource) => string;

/** The id of a resource of which each primary has one at most. */
export const singleResource: IdOf<unknown> = () => "";

/** The id of a resource that has the metadata of a Kubernetes object. */
export const kubernetesResource: IdOf<Pick<KubernetesObject, "metadata">> = ({ metadata }) => keyOf(metadata);

const NONE: ReadonlyMap<string, never> = new Map<string, never>();

/** How long a fetch may lag behind a change of the controller's own, unless an option says otherwise; as long as crossplane's creation grace period. */
export const CREATION_GRACE_MS = 30_000;

/** How many states of a resource are kept in view that a fetch may still show after changes of the controller's own. */
const MOST_STALE = 20;

interface ExternalCacheOptions {
  /** How long a fetch may lag behind a change of the controller's own. 0: every fetch is believed at once. Default: 0 */
  readonly graceMs?: number | undefined;
  /** Returns the time in milliseconds; never runs backwards. */
  readonly time?: (() => number) | undefined;
}

/** A change of the controller's own, until a fetch shows it. */
interface OwnChange<Resource> {
  /** When it was made, as `now` of the cache counts: a fetch that began before does not know of it. */
  readonly at: number;
  readonly time: number;
  /** What a fetch that lags behind may show in its place; undefined for no resource. */
  readonly stale: readonly (Resource | undefined)[];
}

/**
 * The external resources of all primaries; each method that takes news returns whether they are worth an event.
 *
 * Absence is confirmed: a resource that one fetch lacks counts as there, and the next fetch, begun later, decides. A change of the controller's
 * own counts until a fetch shows it, or shows something that was not there before, or the grace is over: lists of services lag behind. What
 * is pushed is believed at once.
 */
export class ExternalCache<Resource> {
  /** A mark for the begin of a fetch: what the controller itself changes after it is newer than what was fetched. */
  now = 0;
  readonly #idOf: IdOf<Resource>;
  readonly #gate: EventGate<Resource>;
  readonly #graceMs: number;
  readonly #time: () => number;
  readonly #resources = new Map<ObjectKey, ReadonlyMap<string, Resource>>();
  /** The changes of the controller's own that no fetch has shown yet, by primary and id. */
  readonly #own = new Map<ObjectKey, Map<string, OwnChange<Resource>>>();
  /** When a fetch lacked a known resource, as `now` counts, by primary and id. */
  readonly #missed = new Map<ObjectKey, Map<string, number>>();

  constructor(
    idOf: IdOf<Resource>,
    gate: EventGate<Resource>,
    { graceMs = 0, time = () => 0 }: ExternalCacheOptions = {},
  ) {
    this.#idOf = idOf;
    this.#gate = gate;
    this.#graceMs = graceMs;
    this.#time = time;
  }

  /** Whether the last fetch lacked a resource of a primary, or of any, so that another one has to decide. */
  isUnsure(primary?: ObjectKey): boolean {
    return primary === undefined ? this.#missed.size > 0 : this.#missed.has(primary);
  }

  /** Whether anything, or that there is nothing, is known of a primary. */
  has(primary: ObjectKey): boolean {
    return this.#resources.has(primary);
  }

  /** Returns the resources of a primary, sorted by their ids: a service lists them in any order. */
  of(primary: ObjectKey): readonly Resource[] {
    const known = this.#of(primary);
    return [...known.keys()].sort().map((id) => known.get(id)!);
  }

  /** Takes the resources of all primaries, fetched at `since`, or pushed; a primary that `all` lacks has none. Returns the primaries with an event. */
  replaceAll(all: ReadonlyMap<ObjectKey, readonly Resource[]>, since?: number): ObjectKey[] {
    // Keys and ids are read before anything is stored: a function that throws leaves the cache as it was.
    const byId = new Map([...all].map(([primary, resources]) => [primary, this.#byId(primary, resources)]));
    const gone = [...this.#resources.keys()].filter((primary) => !byId.has(primary));
    const changed = [...gone, ...byId.keys()].filter((primary) =>
      this.#store(primary, this.#newest(primary, byId.get(primary) ?? NONE, since)),
    );
    for (const primary of gone) if (this.#of(primary).size === 0 && !this.#own.has(primary)) this.forget(primary);
    return changed;
  }

  /** Takes the resources of a primary, fetched at `since`, or pushed. */
  replace(primary: ObjectKey, resources: readonly Resource[], since?: number): boolean {
    return this.#store(primary, this.#newest(primary, this.#byId(primary, resources), since));
  }

  put(primary: ObjectKey, resource: Resource): boolean {
    this.#believe(primary, this.#idOf(resource));
    return this.#store(primary, new Map([...this.#of(primary), ...this.#byId(primary, [resource])]));
  }

  delete(primary: ObjectKey, id: string): boolean {
    this.#believe(primary, id);
    if (!this.#of(primary).has(id)) return false;
    return this.#store(primary, this.#without(primary, id));
  }

  /** Takes what the controller itself has created, unless something newer is known already. */
  recordCreated(primary: ObjectKey, resource: Resource): void {
    const id = this.#idOf(resource);
    if (this.#of(primary).has(id)) return;
    this.#record(primary, id, { resources: new Map([...this.#of(primary), [id, resource]]), before: undefined });
  }

  /** Takes what the controller itself has changed, unless something newer than `previous` is known already. */
  recordUpdated(primary: ObjectKey, resource: Resource, previous: Resource): void {
    const id = this.#idOf(resource);
    const known = this.#of(primary);
    const before = known.get(id);
    if (before === undefined || !isDeepStrictEqual(before, previous)) return;
    this.#record(primary, id, { resources: new Map([...known, [id, resource]]), before });
  }

  recordDeleted(primary: ObjectKey, resource: Resource): void {
    const id = this.#idOf(resource);
    this.#record(primary, id, { resources: this.#without(primary, id), before: this.#of(primary).get(id) ?? resource });
  }

  forget(primary?: ObjectKey): void {
    for (const map of [this.#resources, this.#own, this.#missed]) {
      if (primary === undefined) map.clear();
      else map.delete(primary);
    }
  }

  #record(
    primary: ObjectKey,
    id: string,
    change: { readonly resources: ReadonlyMap<string, Resource>; readonly before: Resource | undefined },
  ): void {
    const own = this.#own.get(primary) ?? new Map<string, OwnChange<Resource>>();
    const stale = [...(own.get(id)?.stale ?? []), change.before].slice(-MOST_STALE);
    this.#own.set(primary, own.set(id, { at: ++this.now, time: this.#time(), stale }));
    this.#resources.set(primary, change.resources);
    remove(this.#missed, primary, id);
  }

  // What is pushed is no state that lags behind; a fetch that began before is older all the same.
  #believe(primary: ObjectKey, id: string): void {
    const own = this.#own.get(primary);
    const change = own?.get(id);
    if (change !== undefined) own!.set(id, { ...change, stale: [] });
    remove(this.#missed, primary, id);
  }

  #without(primary: ObjectKey, id: string): ReadonlyMap<string, Resource> {
    return new Map([...this.#of(primary)].filter(([other]) => other !== id));
  }

  /** Returns what was fetched at `since`, with what counts in its place. */
  #newest(
    primary: ObjectKey,
    fetched: ReadonlyMap<string, Resource>,
    since: number | undefined,
  ): ReadonlyMap<string, Resource> {
    const own = this.#own.get(primary);
    if (since === undefined) {
      this.#own.delete(primary);
      this.#missed.delete(primary);
      return fetched;
    }
    const known = this.#of(primary);
    const newest = new Map(fetched);
    for (const id of new Set([...known.keys(), ...(own?.keys() ?? [])])) {
      const [resource, found] = [known.get(id), fetched.get(id)];
      const change = own?.get(id);
      if (change !== undefined && this.#isBehind(change, { resource, found, since })) {
        if (resource === undefined) newest.delete(id);
        else newest.set(id, resource);
        continue;
      }
      remove(this.#own, primary, id);
      if (resource !== undefined && found === undefined && this.#isFirstMiss(primary, id, since))
        newest.set(id, resource);
      else remove(this.#missed, primary, id);
    }
    return newest;
  }

  /** Tells whether a fetch shows the state before a change of the controller's own. */
  #isBehind(
    { at, time, stale }: OwnChange<Resource>,
    { resource, found, since }: { resource: Resource | undefined; found: Resource | undefined; since: number },
  ): boolean {
    if (at > since) return true;
    if (this.#time() - time >= this.#graceMs) return false;
    // The present state may be an earlier one, too: of a resource that was created and deleted, for example.
    if (stale.some((each) => isDeepStrictEqual(each, found))) return true;
    // A service may still list what it deletes, in whatever state.
    return resource === undefined && found !== undefined;
  }

  #isFirstMiss(primary: ObjectKey, id: string, since: number): boolean {
    if (this.#graceMs === 0) return false;
    const missed = this.#missed.get(primary) ?? new Map<string, number>();
    const at = missed.get(id);
    if (at !== undefined && since >= at) return false;
    if (at === undefined) this.#missed.set(primary, missed.set(id, ++this.now));
    return true;
  }

  #of(primary: ObjectKey): ReadonlyMap<string, Resource> {
    return this.#resources.get(primary) ?? NONE;
  }

  #byId(primary: ObjectKey, resources: readonly Resource[]): ReadonlyMap<string, Resource> {
    checkedKeys([primary], (type) => `a primary is named by ${type}; a key is "namespace/name" or "name"`);
    const byId = new Map<string, Resource>();
    for (const resource of resources) {
      const id = this.#idOf(resource);
      if (byId.has(id))
        throw new Error(`primary "${primary}" has two resources with the id "${id}"; idOf has to tell them apart`);
      byId.set(id, resource);
    }
    return byId;
  }

  #store(primary: ObjectKey, resources: ReadonlyMap<string, Resource>): boolean {
    const known = this.#of(primary);
    this.#resources.set(primary, resources);
    const isNews = (resource: Resource, old: Resource | undefined) => {
      if (old === undefined) return this.#gate.passesAdd(resource);
      return !isDeepStrictEqual(resource, old) && this.#gate.passesUpdate(resource, old);
    };
    const isGone = (id: string, old: Resource) => !resources.has(id) && this.#gate.passesDelete(old, false);
    return (
      [...resources].some(([id, resource]) => isNews(resource, known.get(id))) ||
      [...known].some(([id, old]) => isGone(id, old))
    );
  }
}

function remove(maps: Map<ObjectKey, Map<string, unknown>>, primary: ObjectKey, id: string): void {
  const map = maps.get(primary);
  map?.delete(id);
  if (map?.size === 0) maps.delete(primary);
}
