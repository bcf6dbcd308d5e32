// The cache of resources outside Kubernetes, by primary and ID (JOSDK's ExternalResourceCachingEventSource). It stores every change, by value, even
// if filters reject the event. Returned resources are snapshots.
import { isDeepStrictEqual } from "node:util";
import { type KubernetesObject, type ObjectKey, keyOf } from "../base/kubernetes-object.js";
import { type EventGate, checkedKeys } from "./event-source.js";

/** Returns the ID of a resource, unique among the resources of its primary. */
export type IdOf<Resource> = (resource: Resource) => string;

/** The ID function for resources of which each primary has at most one. */
export const singleResource: IdOf<unknown> = () => "";

/** The ID function for resources with the metadata of a Kubernetes object. */
export const kubernetesResource: IdOf<Pick<KubernetesObject, "metadata">> = ({ metadata }) => keyOf(metadata);

const NONE: ReadonlyMap<string, never> = new Map<string, never>();

/** The default time that a fetch may lag behind an own write: Crossplane's creation grace period. */
export const CREATION_GRACE_MS = 30_000;

/** How many previous states of a resource are recognized as stale in a fetch after own writes. */
const MAX_STALE = 20;

interface ExternalCacheOptions {
  /** How long a fetch may lag behind an own write, in milliseconds; 0 if every fetch is current. Default: 0 */
  readonly graceMs?: number | undefined;
  /** Returns the time in milliseconds. Must be monotonic. */
  readonly time?: (() => number) | undefined;
}

/** A write of the controller that no fetch has shown yet. */
interface OwnChange<Resource> {
  /** `now` of the cache at the write: a fetch that started earlier does not show it. */
  readonly at: number;
  readonly time: number;
  /** States that a lagging fetch may return; undefined stands for no resource. */
  readonly stale: readonly (Resource | undefined)[];
}

/**
 * External resources of all primaries. Methods that store fetched or pushed resources return whether that causes an event.
 *
 * Absence has to be confirmed: a resource that is missing from a fetch is kept until a later fetch lacks it as well. Because lists of services lag
 * behind, an own write takes precedence until a fetch shows it, or shows a state that is not stale, or the grace period has passed. Pushed resources
 * take effect immediately.
 */
export class ExternalCache<Resource> {
  /** A logical clock. Read it at the start of a fetch: own writes after that are newer than the result of the fetch. */
  now = 0;
  readonly #idOf: IdOf<Resource>;
  readonly #gate: EventGate<Resource>;
  readonly #graceMs: number;
  readonly #time: () => number;
  readonly #resources = new Map<ObjectKey, ReadonlyMap<string, Resource>>();
  /** Own writes that no fetch has shown yet, by primary and ID. */
  readonly #own = new Map<ObjectKey, Map<string, OwnChange<Resource>>>();
  /** The logical time at which a fetch lacked a known resource, by primary and ID. */
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

  /** Reports whether the last fetch lacked a known resource of a primary, or of any primary, so that another fetch has to confirm its absence. */
  isUnsure(primary?: ObjectKey): boolean {
    return primary === undefined ? this.#missed.size > 0 : this.#missed.has(primary);
  }

  /** Reports whether the resources of a primary are known. There may be none. */
  has(primary: ObjectKey): boolean {
    return this.#resources.has(primary);
  }

  /** Returns the resources of a primary, sorted by ID, because a service may list them in any order. */
  of(primary: ObjectKey): readonly Resource[] {
    const known = this.#of(primary);
    return [...known.keys()].sort().map((id) => known.get(id)!);
  }

  /**
   * Stores the resources of all primaries, fetched at `since`, or pushed. A primary missing from `all` has none. Returns the primaries with an event.
   */
  replaceAll(all: ReadonlyMap<ObjectKey, readonly Resource[]>, since?: number): ObjectKey[] {
    // Compute keys and IDs before storing anything: if a function throws, the cache is unchanged.
    const byId = new Map([...all].map(([primary, resources]) => [primary, this.#byId(primary, resources)]));
    const gone = [...this.#resources.keys()].filter((primary) => !byId.has(primary));
    const changed = [...gone, ...byId.keys()].filter((primary) =>
      this.#store(primary, this.#newest(primary, byId.get(primary) ?? NONE, since)),
    );
    for (const primary of gone) if (this.#of(primary).size === 0 && !this.#own.has(primary)) this.forget(primary);
    return changed;
  }

  /** Stores the resources of a primary, fetched at `since`, or pushed. Returns whether that causes an event. */
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

  /** Records a resource that the controller created, unless the cache already has a state of it. */
  recordCreated(primary: ObjectKey, resource: Resource): void {
    const id = this.#idOf(resource);
    if (this.#of(primary).has(id)) return;
    this.#record(primary, id, { resources: new Map([...this.#of(primary), [id, resource]]), before: undefined });
  }

  /** Records a resource that the controller updated, unless the cache has a state other than `previous`. */
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
    const stale = [...(own.get(id)?.stale ?? []), change.before].slice(-MAX_STALE);
    this.#own.set(primary, own.set(id, { at: ++this.now, time: this.#time(), stale }));
    this.#resources.set(primary, change.resources);
    remove(this.#missed, primary, id);
  }

  // A pushed state is current, so no state is stale any more. A fetch that started before the own write is still older.
  #believe(primary: ObjectKey, id: string): void {
    const own = this.#own.get(primary);
    const change = own?.get(id);
    if (change !== undefined) own!.set(id, { ...change, stale: [] });
    remove(this.#missed, primary, id);
  }

  #without(primary: ObjectKey, id: string): ReadonlyMap<string, Resource> {
    return new Map([...this.#of(primary)].filter(([other]) => other !== id));
  }

  /** Returns the resources fetched at `since`, but own writes and unconfirmed absences take precedence over stale states. */
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

  /** Reports whether a fetch shows a state from before an own write. */
  #isBehind(
    { at, time, stale }: OwnChange<Resource>,
    { resource, found, since }: { resource: Resource | undefined; found: Resource | undefined; since: number },
  ): boolean {
    if (at > since) return true;
    if (this.#time() - time >= this.#graceMs) return false;
    // The current state may equal a stale one, for example if a resource was created and deleted.
    if (stale.some((each) => isDeepStrictEqual(each, found))) return true;
    // A service may still list a resource, in any state, while it deletes it.
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
      // Pages of a list may overlap.
      if (byId.has(id) && !isDeepStrictEqual(byId.get(id), resource))
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
