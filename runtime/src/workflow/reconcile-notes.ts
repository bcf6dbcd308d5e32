import type { WatchedKind } from "./prune/leftovers.js";

/** Returns the cluster and kind of objects, whose keys tell them apart there. */
export function placeOf({ cluster = "", resource }: Pick<WatchedKind, "cluster" | "resource">): string {
  return JSON.stringify([cluster, resource.group, resource.kind]);
}

/** The objects that dependents want or had deleted in one reconcile. All runs of the reconcile share the notes, so the reconcilers of dependents keep nothing. */
export class ReconcileNotes {
  /** The removals of objects, in flight or done, by uid. */
  readonly removals = new Map<string, Promise<unknown>>();
  /** The live objects that the own `delete` of a dependent left, so that nothing else deletes them. */
  readonly kept = new Set<object>();
  readonly #wanted = new Map<string, Set<string>>();
  readonly #dependents = new Map<string, string>();

  /** Notes that a dependent wants an object, unless another one does; returns the name of the one that does. */
  want(dependent: string, place: string, id: string): string {
    const first = this.dependentThatWants(place, id) ?? dependent;
    if (first !== dependent) return first;
    this.#dependents.set(`${place} ${id}`, dependent);
    const ids = this.#wanted.get(dependent) ?? new Set();
    this.#wanted.set(dependent, ids.add(id));
    return dependent;
  }

  /** Returns the name of the dependent that wants an object; `undefined` if none said so. */
  dependentThatWants(place: string, id: string): string | undefined {
    return this.#dependents.get(`${place} ${id}`);
  }

  /** Returns the ids of the objects that a dependent wants; `undefined` if it has not said. */
  wantedBy(dependent: string): ReadonlySet<string> | undefined {
    return this.#wanted.get(dependent);
  }
}
