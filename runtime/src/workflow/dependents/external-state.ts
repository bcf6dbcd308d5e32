// Where the ids of external resources are kept that nothing but the runtime knows (JOSDK DependentResourceWithExplicitState).
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceWrite } from "../../write/kind-operations.js";

/** The ids of the resources of one dependent, by the keys of items; the key is empty unless the dependent is a bulk one. */
export type Ids = ReadonlyMap<string, string>;

/** No ids. */
export const NO_IDS: Ids = new Map<string, string>();

/** Keeps the ids of the resources of one dependent. */
export interface ExternalStateStore {
  /** Returns the ids of a primary, as they were written last. */
  read(primary: KubernetesObject): Ids;
  /** Keeps an id under a key; `undefined` forgets it. */
  set(primary: KubernetesObject, key: string, id: string | undefined): Promise<void>;
}

/** Returns ids after one of them is set; `undefined` removes it. */
export function withId(ids: Ids, key: string, id: string | undefined): Ids {
  const others = [...ids].filter(([other]) => other !== key);
  return new Map(id === undefined ? others : [...others, [key, id]]);
}

/** Reads ids at a path of an object: a text is the only id, an object has the ids of items by their keys. */
export function readIdsAt(object: unknown, path: readonly string[]): Ids {
  const found = path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], object);
  if (typeof found === "string") return new Map([["", found]]);
  return new Map(Object.entries((found ?? {}) as Record<string, string>));
}

/** Returns an object with a value at a path. */
export function nest(path: readonly string[], value: unknown): object {
  return path.reduceRight((inner, name) => ({ [name]: inner }), value) as object;
}

interface StatusStateOptions {
  readonly path: readonly string[];
  readonly isBulk: boolean;
  /** Returns the primary as it was written last. */
  latest(primary: KubernetesObject): KubernetesObject;
  mergePatchStatus(primary: KubernetesObject, status: object): Promise<ResourceWrite>;
}

/** Keeps ids in the status of the primaries: a single id as a text, the ids of items as an object by their keys. */
export function createStatusState({ path, isBulk, latest, mergePatchStatus }: StatusStateOptions): ExternalStateStore {
  const read = (primary: KubernetesObject) => readIdsAt(latest(primary), ["status", ...path]);
  return {
    read,
    async set(primary, key, id) {
      if (id === undefined && !read(primary).has(key)) return;
      const value = id ?? null;
      await mergePatchStatus(primary, nest(path, isBulk ? { [key]: value } : value));
    },
  };
}

/** Remembers ids that could not be written, or whose object somebody deleted. An id that somebody changes there counts. */
export class RememberedState implements ExternalStateStore {
  readonly #kept: ExternalStateStore;
  /** What is known of each primary; a primary that is created again under its name has another uid. */
  readonly #known = new Map<ObjectKey, { readonly uid: string | undefined; readonly ids: Ids }>();

  constructor(kept: ExternalStateStore) {
    this.#kept = kept;
  }

  read(primary: KubernetesObject): Ids {
    const { metadata } = primary;
    const kept = this.#kept.read(primary);
    const remembered = this.#known.get(keyOf(metadata));
    const known = remembered?.uid === metadata.uid ? (remembered?.ids ?? NO_IDS) : NO_IDS;
    const isNews = [...kept].some(([key, id]) => known.get(key) !== id);
    return isNews ? this.#remember(primary, new Map([...known, ...kept])) : known;
  }

  /** Tells whether an id is kept under a key, and not only known. */
  isKept(primary: KubernetesObject, key: string, id: string): boolean {
    return this.#kept.read(primary).get(key) === id;
  }

  async set(primary: KubernetesObject, key: string, id: string | undefined): Promise<void> {
    if (id !== undefined) this.#remember(primary, withId(this.read(primary), key, id));
    await this.#kept.set(primary, key, id);
    if (id === undefined) this.#remember(primary, withId(this.read(primary), key, id));
  }

  forget(primary: ObjectKey): void {
    this.#known.delete(primary);
  }

  #remember({ metadata }: KubernetesObject, ids: Ids): Ids {
    if (ids.size === 0) this.#known.delete(keyOf(metadata));
    else this.#known.set(keyOf(metadata), { uid: metadata.uid, ids });
    return ids;
  }
}
