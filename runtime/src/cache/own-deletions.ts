import { type KubernetesObject, type ObjectKey, isNewerVersion } from "../base/kubernetes-object.js";
import { uidOf, versionOf, type DecodedResource } from "../decode/decode-resource.js";

interface OwnDeletion {
  /** The last state that was known; nothing up to its version is there any more. */
  readonly entry: DecodedResource;
  /** Who deleted it. */
  readonly by: object | undefined;
}

/** The last objects that we deleted ourselves, by key, as long as the watch has not brought that. */
export class OwnDeletions {
  readonly #deletions = new Map<ObjectKey, OwnDeletion>();

  get size(): number {
    return this.#deletions.size;
  }

  /** Remembers that `by` deleted an object, whose last known state this is. */
  set(key: ObjectKey, entry: DecodedResource, by: object | undefined): void {
    this.#deletions.set(key, { entry, by });
  }

  /** Tells whether a state is one of an object that we deleted, or from before. */
  covers(key: ObjectKey, entry: DecodedResource): boolean {
    // It is empty most of the time.
    const deleted = this.#deletions.size === 0 ? undefined : this.#deletions.get(key)?.entry;
    if (deleted === undefined) return false;
    return uidOf(deleted) === uidOf(entry) || !isNewerVersion(versionOf(entry), versionOf(deleted));
  }

  /** Tells whether `by` deleted this object. */
  isBy(key: ObjectKey, { metadata }: KubernetesObject, by: object): boolean {
    const deletion = this.#deletions.size === 0 ? undefined : this.#deletions.get(key);
    return deletion?.by === by && uidOf(deletion?.entry) === metadata.uid;
  }

  /** Forgets an object whose deletion the watch brought. */
  delete(key: ObjectKey, uid: string | undefined): void {
    if (uidOf(this.#deletions.get(key)?.entry) === uid) this.#deletions.delete(key);
  }

  /** Returns the objects whose deletion a watch at `version` does not bring, because it has another object there, or none. */
  passedBy(
    version: string,
    observed: { get(key: ObjectKey): DecodedResource | undefined },
  ): { readonly key: ObjectKey; readonly object: KubernetesObject }[] {
    return [...this.#deletions].flatMap(([key, { entry }]) => {
      const isExpected = uidOf(observed.get(key)) === uidOf(entry) || isNewerVersion(versionOf(entry), version);
      return isExpected ? [] : [{ key, object: entry.object }];
    });
  }

  /** Returns all objects whose deletion the watch has not brought. */
  all(): { readonly key: ObjectKey; readonly object: KubernetesObject }[] {
    return [...this.#deletions].map(([key, { entry }]) => ({ key, object: entry.object }));
  }

  clear(): void {
    this.#deletions.clear();
  }
}
