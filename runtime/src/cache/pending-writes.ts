// What we did ourselves and the watch has not brought yet: writes by their answers, and deletions.
import {
  compareResourceVersions,
  isNewerVersion,
  type KubernetesObject,
  type ObjectKey,
} from "../base/kubernetes-object.js";
import { uidOf, versionOf, type DecodedResource } from "../decode/decode-resource.js";

/** An object under its key. */
export interface KeyedObject {
  readonly key: ObjectKey;
  readonly object: KubernetesObject;
}

/** The newest answers to own writes, at most one for each object, until the watch has come to them. */
export class PendingWrites {
  readonly #entries = new Map<ObjectKey, DecodedResource>();
  /** The objects by the version of their answer, in the order in which the answers came. */
  readonly #keys = new Map<string, ObjectKey>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: ObjectKey): DecodedResource | undefined {
    // It is empty most of the time.
    return this.#entries.size === 0 ? undefined : this.#entries.get(key);
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#entries.keys();
  }

  /** Returns the answer of this version. */
  ofVersion(version: string): DecodedResource | undefined {
    const key = this.#keys.get(version);
    return key === undefined ? undefined : this.#entries.get(key);
  }

  set(key: ObjectKey, entry: DecodedResource): void {
    this.delete(key);
    this.#entries.set(key, entry);
    this.#keys.set(versionOf(entry), key);
  }

  delete(key: ObjectKey): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#keys.delete(versionOf(entry));
  }

  /** Returns an object whose answer is not newer than `version`; one that came behind a newer answer is found after that. */
  passedBy(version: string): ObjectKey | undefined {
    for (const [answered, key] of this.#keys) return compareResourceVersions(answered, version) <= 0 ? key : undefined;
    return undefined;
  }

  /** Returns all objects whose answers are not newer than `version`. */
  allPassedBy(version: string): KeyedObject[] {
    return this.all().filter(({ object }) => !isNewerVersion(object.metadata.resourceVersion ?? "0", version));
  }

  /** Returns all objects with their answers. */
  all(): KeyedObject[] {
    return [...this.#entries].map(([key, { object }]) => ({ key, object }));
  }
}

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
  passedBy(version: string, observed: { get(key: ObjectKey): DecodedResource | undefined }): KeyedObject[] {
    return [...this.#deletions].flatMap(([key, { entry }]) => {
      const isExpected = uidOf(observed.get(key)) === uidOf(entry) || isNewerVersion(versionOf(entry), version);
      return isExpected ? [] : [{ key, object: entry.object }];
    });
  }

  /** Returns all objects whose deletion the watch has not brought. */
  all(): KeyedObject[] {
    return [...this.#deletions].map(([key, { entry }]) => ({ key, object: entry.object }));
  }
}
