import { isNewerVersion, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { uidOf, versionOf, type DecodedResource } from "../base/decoded-resource.js";
import type { ResourceView } from "./resource-view.js";

interface OwnDeletion {
  /** The last known state. Every state up to its version is gone. */
  readonly entry: DecodedResource;
  readonly by: ReadonlySet<ResourceView>;
}

/** Own deletions by key, until the watch brings them. */
export class OwnDeletions {
  readonly #deletions = new Map<ObjectKey, OwnDeletion>();

  get size(): number {
    return this.#deletions.size;
  }

  /** Remembers that a controller, whose views are `by`, deleted an object whose last known state is `entry`. */
  set(key: ObjectKey, entry: DecodedResource, by: ReadonlySet<ResourceView>): void {
    this.#deletions.set(key, { entry, by });
  }

  /** Tells whether a state belongs to a deleted object, or is older than its deletion. */
  covers(key: ObjectKey, entry: DecodedResource): boolean {
    const deleted = this.#deletions.get(key)?.entry;
    if (deleted === undefined) return false;
    return uidOf(deleted) === uidOf(entry) || !isNewerVersion(versionOf(entry), versionOf(deleted));
  }

  /** Tells whether the controller of a view deleted this object and the watch has not brought the deletion yet. */
  isBy(key: ObjectKey, { metadata }: KubernetesObject, view: ResourceView): boolean {
    const deletion = this.#deletions.get(key);
    return deletion?.by.has(view) === true && uidOf(deletion.entry) === metadata.uid;
  }

  /** Forgets a deletion that the watch brought. */
  delete(key: ObjectKey, uid: string | undefined): void {
    if (uidOf(this.#deletions.get(key)?.entry) === uid) this.#deletions.delete(key);
  }

  /** Returns the last states of what a watch at `version` will not bring as deleted; without a version all of them. */
  passedBy(version: string | undefined, observed: ReadonlyMap<ObjectKey, DecodedResource>): KubernetesObject[] {
    return [...this.#deletions].flatMap(([key, { entry }]) => {
      const isExpected = version !== undefined && isNewerVersion(versionOf(entry), version);
      const isObserved = version !== undefined && uidOf(observed.get(key)) === uidOf(entry);
      return isExpected || isObserved ? [] : [entry.object];
    });
  }
}
