import { type ObjectKey, compareResourceVersions, isNewerVersion } from "../base/kubernetes-object.js";
import { versionOf, type DecodedResource } from "../decode/decode-resource.js";

/** The newest answers to own writes, at most one for each object, until the watch has come to them. */
export class AnswerOverlay {
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
  allPassedBy(version: string): ObjectKey[] {
    return [...this.#keys].flatMap(([answered, key]) => (compareResourceVersions(answered, version) <= 0 ? [key] : []));
  }

  /** Returns the newest of all versions, and of this one. */
  latestVersion(version: string): string {
    let latest = version;
    for (const answered of this.#keys.keys()) if (isNewerVersion(answered, latest)) latest = answered;
    return latest;
  }

  clear(): void {
    this.#entries.clear();
    this.#keys.clear();
  }
}
