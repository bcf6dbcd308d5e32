// Own writes and own deletions that the watch has not brought yet.
import { isNewerVersion, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { uidOf, versionOf, type DecodedResource } from "../decode/decode-resource.js";

/** An object under its key. */
export interface KeyedObject {
  readonly key: ObjectKey;
  readonly object: KubernetesObject;
}

/** The newest answers to own writes, at most one per object, until the watch reaches their versions. */
export class PendingWrites {
  /** In the order of arrival, which is about that of their events. */
  readonly #entries = new Map<ObjectKey, DecodedResource>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: ObjectKey): DecodedResource | undefined {
    // The map is empty most of the time.
    return this.#entries.size === 0 ? undefined : this.#entries.get(key);
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#entries.keys();
  }

  /** Returns the answer that has this version. */
  ofVersion(version: string): DecodedResource | undefined {
    for (const entry of this.#entries.values()) if (versionOf(entry) === version) return entry;
    return undefined;
  }

  set(key: ObjectKey, entry: DecodedResource): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
  }

  delete(key: ObjectKey): void {
    this.#entries.delete(key);
  }

  /** Returns the key of the oldest answer if it is not newer than `version`. */
  firstPassedBy(version: string): ObjectKey | undefined {
    for (const [key, entry] of this.#entries) return isNewerVersion(versionOf(entry), version) ? undefined : key;
    return undefined;
  }

  /** Returns the answers that are not newer than `version`; all of them without one. */
  passedBy(version?: string): KeyedObject[] {
    return [...this.#entries].flatMap(([key, entry]) =>
      version !== undefined && isNewerVersion(versionOf(entry), version) ? [] : [{ key, object: entry.object }],
    );
  }
}

interface OwnDeletion {
  /** The last known state. Every state up to its version is gone. */
  readonly entry: DecodedResource;
  /** The owner of the view that deleted the object. */
  readonly by: object | undefined;
}

/** Own deletions by key, until the watch brings them. */
export class OwnDeletions {
  readonly #deletions = new Map<ObjectKey, OwnDeletion>();

  get size(): number {
    return this.#deletions.size;
  }

  /** Remembers that `by` deleted an object; `entry` is its last known state. */
  set(key: ObjectKey, entry: DecodedResource, by: object | undefined): void {
    this.#deletions.set(key, { entry, by });
  }

  /** Tells whether a state belongs to a deleted object, or is older than its deletion. */
  covers(key: ObjectKey, entry: DecodedResource): boolean {
    // The map is empty most of the time.
    const deleted = this.#deletions.size === 0 ? undefined : this.#deletions.get(key)?.entry;
    if (deleted === undefined) return false;
    return uidOf(deleted) === uidOf(entry) || !isNewerVersion(versionOf(entry), versionOf(deleted));
  }

  /** Tells whether `by` deleted this object. */
  isBy(key: ObjectKey, { metadata }: KubernetesObject, by: object): boolean {
    const deletion = this.#deletions.size === 0 ? undefined : this.#deletions.get(key);
    return deletion?.by === by && uidOf(deletion?.entry) === metadata.uid;
  }

  /** Forgets a deletion that the watch brought. */
  delete(key: ObjectKey, uid: string | undefined): void {
    if (uidOf(this.#deletions.get(key)?.entry) === uid) this.#deletions.delete(key);
  }

  /**
   * Returns the deletions that a watch at `version` will not bring, because it holds another object of that name, or none; without a version
   * all that it has not brought.
   */
  passedBy(version?: string, observed?: { get(key: ObjectKey): DecodedResource | undefined }): KeyedObject[] {
    return [...this.#deletions].flatMap(([key, { entry }]) => {
      const isExpected = uidOf(observed?.get(key)) === uidOf(entry) || isNewerVersion(versionOf(entry), version ?? "");
      return version !== undefined && isExpected ? [] : [{ key, object: entry.object }];
    });
  }
}
