import { controllerOf, type KubernetesObject, keyOfObject } from "./kubernetes-object.js";

/**
 * The latest known state of the objects of one kind.
 *
 * Own writes are entered as they are answered, so nobody decides on a state from before them; what the watch tells later of such a
 * write, or of a time before it, changes nothing. Namespaces and controllers are indexed: a controller looks at the objects of each owner again
 * and again, which would take time by the square of all objects.
 */
export class ObjectCache<T extends KubernetesObject = KubernetesObject> {
  readonly #objects = new Map<string, T>();
  readonly #byNamespace = new Groups<T>(({ metadata }) => metadata.namespace ?? "");
  readonly #byController = new Groups<T>(groupOf);
  /** The uids of objects that we deleted, and whose end the watch has yet to tell. */
  readonly #gone = new Set<string>();

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** The objects of a namespace, or all. */
  list(namespace?: string): T[] {
    return namespace === undefined ? [...this.#objects.values()] : this.#byNamespace.get(namespace);
  }

  /** The objects of a controller, by its uid. */
  controlledBy(uid: string): T[] {
    return this.#byController.get(uid);
  }

  /** The objects of a namespace that have no controller. */
  orphans(namespace = ""): T[] {
    return this.#byController.get(orphansOf(namespace));
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
    for (const groups of [this.#byNamespace, this.#byController]) groups.replace(key, before, object);
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
    const before = this.#objects.get(key);
    if (before === undefined || before.metadata.uid !== metadata.uid) return false;
    for (const groups of [this.#byNamespace, this.#byController]) groups.replace(key, before, undefined);
    return this.#objects.delete(key);
  }
}

function groupOf(object: KubernetesObject): string {
  return controllerOf(object)?.uid ?? orphansOf(object.metadata.namespace ?? "");
}

// No uid begins so.
function orphansOf(namespace: string): string {
  return `/${namespace}`;
}

/** Objects in groups, in the order in which they came. */
class Groups<T> {
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #groupOf: (object: T) => string;

  constructor(groupOf: (object: T) => string) {
    this.#groupOf = groupOf;
  }

  get(name: string): T[] {
    return [...(this.#groups.get(name)?.values() ?? [])];
  }

  replace(key: string, before: T | undefined, after: T | undefined): void {
    const [from, to] = [before, after].map((object) => (object === undefined ? undefined : this.#groupOf(object)));
    if (from !== undefined && from !== to) {
      const group = this.#groups.get(from);
      group?.delete(key);
      if (group?.size === 0) this.#groups.delete(from);
    }
    if (to === undefined || after === undefined) return;
    let group = this.#groups.get(to);
    if (group === undefined) this.#groups.set(to, (group = new Map()));
    group.set(key, after);
  }
}
