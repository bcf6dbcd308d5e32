import { uidOf, type DecodedResource } from "../base/decoded-resource.js";
import type { UnseenObject } from "./dependents/dependent-reconciler.js";
import type { WatchedKind } from "./prune/leftovers.js";

/** Returns the cluster and kind of objects, whose keys tell them apart there. */
export function placeOf({ cluster = "", resource }: Pick<WatchedKind, "cluster" | "resource">): string {
  return JSON.stringify([cluster, resource.group, resource.kind]);
}

/** As what an object is wanted: by which dependent, and as which item of a bulk dependent. */
export interface Wish {
  readonly dependent: string;
  readonly item?: string | undefined;
}

/**
 * Live objects of dependents that their watches do not show, because they lack the label of the controller. A write that finds one starts its
 * step anew: conditions, `secondary` and `desired` see the object before it is replaced.
 */
export class DiscoveredObjects {
  readonly #entries = new Map<string, DecodedResource>();
  readonly #foreign = new Set<string | undefined>();

  /** Adds the object of a dependent, or of an item; `isForeign` if it does not belong to the primary before it is written. */
  add({ dependent, item }: Wish, { unseen, isForeign = false }: UnseenObject): void {
    this.#entries.set(JSON.stringify([dependent, item]), unseen);
    if (isForeign) this.#foreign.add(uidOf(unseen));
  }

  /** Forgets an object that was deleted or released. */
  forget(uid: string | undefined): void {
    for (const [key, entry] of this.#entries) if (uidOf(entry) === uid) this.#entries.delete(key);
  }

  isForeign(uid: string | undefined): boolean {
    return this.#foreign.has(uid);
  }

  of(dependent: string, item?: string): DecodedResource | undefined {
    return this.#entries.get(JSON.stringify([dependent, item]));
  }

  /** Returns the objects of the items of a bulk dependent, by their keys. */
  itemsOf(dependent: string): ReadonlyMap<string, DecodedResource> {
    const items = new Map<string, DecodedResource>();
    for (const [key, entry] of this.#entries) {
      const [name, item] = JSON.parse(key) as [string, string | null];
      if (name === dependent && item !== null) items.set(item, entry);
    }
    return items;
  }

  get all(): readonly DecodedResource[] {
    return [...this.#entries.values()];
  }

  entriesOf(dependent: string): readonly DecodedResource[] {
    const single = this.of(dependent);
    return [...(single === undefined ? [] : [single]), ...this.itemsOf(dependent).values()];
  }
}

/** The objects that dependents want or had deleted in one reconcile. All runs of the reconcile share the notes, so the reconcilers of dependents keep nothing. */
export class ReconcileNotes {
  /** The removals of objects, in flight or done, by uid. */
  readonly removals = new Map<string, Promise<unknown>>();
  /** The uids of the objects that the own `delete` of a dependent left, so that nothing else deletes them. */
  readonly kept = new Set<string | undefined>();
  readonly discovered = new DiscoveredObjects();
  readonly #wishes = new Map<string, Wish>();
  /** The names of the dependents that want an object. */
  readonly #wishing = new Set<string>();

  /** Notes that a dependent wants an object, unless another one does; returns the name of the one that does. */
  want(wish: Wish, place: string, id: string): string {
    const { dependent } = wish;
    const first = this.wishFor(place, id)?.dependent ?? dependent;
    if (first !== dependent) return first;
    this.#wishes.set(`${place} ${id}`, wish);
    this.#wishing.add(dependent);
    return dependent;
  }

  /** Returns as what an object is wanted; `undefined` if no dependent said that it wants it. */
  wishFor(place: string, id: string): Wish | undefined {
    return this.#wishes.get(`${place} ${id}`);
  }

  /** Tells whether a dependent said that it wants an object. */
  hasWish(dependent: string): boolean {
    return this.#wishing.has(dependent);
  }
}
