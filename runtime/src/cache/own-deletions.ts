import { isNewerVersion, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { uidOf, versionOf, type DecodedResource } from "../base/decoded-resource.js";
import type { ResourceView } from "./resource-view.js";

/** Who changed an object: a controller, by its views that may show the object, and the primary for whose reconcile it did. */
export interface OwnChange {
  readonly views: readonly ResourceView[];
  readonly madeFor?: ObjectKey | undefined;
}

/** Own deletions by key, until the watch brings them. */
export class OwnDeletions {
  /** With the last known state: every state up to its version is gone. */
  readonly #deletions = new Map<ObjectKey, { readonly entry: DecodedResource; readonly by: OwnChange }>();

  get size(): number {
    return this.#deletions.size;
  }

  /** Remembers that a controller deleted an object whose last known state is `entry`. */
  set(key: ObjectKey, entry: DecodedResource, by: OwnChange): void {
    this.#deletions.set(key, { entry, by });
  }

  /** Tells whether a state belongs to a deleted object, or is older than its deletion. */
  covers(key: ObjectKey, entry: DecodedResource): boolean {
    const deleted = this.#deletions.get(key)?.entry;
    if (deleted === undefined) return false;
    return uidOf(deleted) === uidOf(entry) || !isNewerVersion(versionOf(entry), versionOf(deleted));
  }

  /** Returns who deleted this object, if that is the controller of a view, and the watch has not brought the deletion yet. */
  changeOf(key: ObjectKey, { metadata }: KubernetesObject, view: ResourceView): OwnChange | undefined {
    const deletion = this.#deletions.get(key);
    const isOwn = deletion?.by.views.includes(view) === true && uidOf(deletion.entry) === metadata.uid;
    return isOwn ? deletion.by : undefined;
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
