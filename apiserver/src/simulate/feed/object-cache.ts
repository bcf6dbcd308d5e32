import { type KubernetesObject, keyOfObject } from "./kubernetes-object.js";

/**
 * The latest known state of the objects of one kind.
 *
 * Own writes are entered as they are answered, so nobody decides on a state from before them; what the watch tells later of such a
 * write, or of a time before it, changes nothing.
 */
export class ObjectCache<T extends KubernetesObject = KubernetesObject> {
  readonly #objects = new Map<string, T>();
  /** The uids of objects that we deleted, and whose end the watch has yet to tell. */
  readonly #gone = new Set<string>();

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** The objects of a namespace, or all. */
  list(namespace?: string): T[] {
    const objects = [...this.#objects.values()];
    return namespace === undefined ? objects : objects.filter(({ metadata }) => metadata.namespace === namespace);
  }

  /** Enters a state; returns whether it is news. */
  set(object: T): boolean {
    const { uid, resourceVersion } = object.metadata;
    if (this.#gone.has(uid)) return false;
    const key = keyOfObject(object.metadata);
    const before = this.#objects.get(key);
    if (before?.metadata.uid === uid && Number(before.metadata.resourceVersion) >= Number(resourceVersion))
      return false;
    this.#objects.set(key, object);
    return true;
  }

  /** Takes out what the watch tells to be gone; `undefined` if it was known. */
  remove({ metadata }: KubernetesObject): void {
    this.#gone.delete(metadata.uid);
    this.#removeObject(metadata);
  }

  /** Takes out what was deleted by us, before the watch tells it. */
  forget({ metadata }: KubernetesObject): void {
    if (this.#removeObject(metadata)) this.#gone.add(metadata.uid);
  }

  #removeObject(metadata: KubernetesObject["metadata"]): boolean {
    const key = keyOfObject(metadata);
    return this.#objects.get(key)?.metadata.uid === metadata.uid && this.#objects.delete(key);
  }
}
