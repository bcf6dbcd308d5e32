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

/** The external resources of all primaries; each method that takes news returns whether they are worth an event. */
export class ExternalCache<Resource> {
  /** A mark for the begin of a fetch: what the controller itself changes after it is newer than what was fetched. */
  now = 0;
  readonly #idOf: IdOf<Resource>;
  readonly #gate: EventGate<Resource>;
  readonly #resources = new Map<ObjectKey, ReadonlyMap<string, Resource>>();
  /** When the controller itself changed a resource, as `now` counts, by primary and id; a fetch that began later knows of it. */
  readonly #recorded = new Map<ObjectKey, Map<string, number>>();

  constructor(idOf: IdOf<Resource>, gate: EventGate<Resource>) {
    this.#idOf = idOf;
    this.#gate = gate;
  }

  /** Whether anything, or that there is nothing, is known of a primary. */
  has(primary: ObjectKey): boolean {
    return this.#resources.has(primary);
  }

  of(primary: ObjectKey): readonly Resource[] {
    return [...(this.#resources.get(primary)?.values() ?? [])];
  }

  /** Takes the resources of all primaries, fetched at `since`; a primary that `all` lacks has none. Returns the primaries with an event. */
  replaceAll(all: ReadonlyMap<ObjectKey, readonly Resource[]>, since = Infinity): ObjectKey[] {
    // Keys and ids are read before anything is stored: a function that throws leaves the cache as it was.
    const byId = new Map([...all].map(([primary, resources]) => [primary, this.#byId(primary, resources)]));
    const gone = [...this.#resources.keys()].filter((primary) => !byId.has(primary));
    const changed = [...gone, ...byId.keys()].filter((primary) =>
      this.#store(primary, this.#newest(primary, byId.get(primary) ?? NONE, since)),
    );
    for (const primary of gone) if (this.#of(primary).size === 0) this.forget(primary);
    return changed;
  }

  replace(primary: ObjectKey, resources: readonly Resource[], since = Infinity): boolean {
    return this.#store(primary, this.#newest(primary, this.#byId(primary, resources), since));
  }

  put(primary: ObjectKey, resource: Resource): boolean {
    return this.#store(primary, new Map([...this.#of(primary), ...this.#byId(primary, [resource])]));
  }

  delete(primary: ObjectKey, id: string): boolean {
    if (!this.#of(primary).has(id)) return false;
    return this.#store(primary, this.#without(primary, id));
  }

  /** Takes what the controller itself has created, unless something newer is known already. */
  recordCreated(primary: ObjectKey, resource: Resource): void {
    const id = this.#idOf(resource);
    if (!this.#of(primary).has(id)) this.#record(primary, id, new Map([...this.#of(primary), [id, resource]]));
  }

  /** Takes what the controller itself has changed, unless something newer than `previous` is known already. */
  recordUpdated(primary: ObjectKey, resource: Resource, previous: Resource): void {
    const id = this.#idOf(resource);
    const known = this.#of(primary);
    if (!known.has(id) || !isDeepStrictEqual(known.get(id), previous)) return;
    this.#record(primary, id, new Map([...known, [id, resource]]));
  }

  recordDeleted(primary: ObjectKey, resource: Resource): void {
    const id = this.#idOf(resource);
    this.#record(primary, id, this.#without(primary, id));
  }

  forget(primary?: ObjectKey): void {
    for (const map of [this.#resources, this.#recorded]) {
      if (primary === undefined) map.clear();
      else map.delete(primary);
    }
  }

  #record(primary: ObjectKey, id: string, resources: ReadonlyMap<string, Resource>): void {
    const recorded = this.#recorded.get(primary) ?? new Map<string, number>();
    this.#recorded.set(primary, recorded.set(id, ++this.now));
    this.#resources.set(primary, resources);
  }

  #without(primary: ObjectKey, id: string): ReadonlyMap<string, Resource> {
    return new Map([...this.#of(primary)].filter(([other]) => other !== id));
  }

  /** Returns what was fetched, with what the controller itself changed after the fetch began. */
  #newest(primary: ObjectKey, fetched: ReadonlyMap<string, Resource>, since: number): ReadonlyMap<string, Resource> {
    const recorded = this.#recorded.get(primary);
    if (recorded === undefined) return fetched;
    const newest = new Map(fetched);
    for (const [id, at] of recorded) {
      const known = this.#of(primary).get(id);
      if (at <= since) recorded.delete(id);
      else if (known === undefined) newest.delete(id);
      else newest.set(id, known);
    }
    if (recorded.size === 0) this.#recorded.delete(primary);
    return newest;
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
