// Where the ids of external resources are kept that nothing but the runtime knows (JOSDK DependentResourceWithExplicitState).
import type { KubernetesObject } from "../../base/kubernetes-object.js";
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

/** What a state in the status of primaries is written with. */
export interface StatusStateOptions {
  /** Leads through the status. */
  readonly path: readonly string[];
  /** Whether there is an id for each item. */
  readonly isBulk: boolean;
  /** Returns the primary as it was written last. */
  latest(primary: KubernetesObject): KubernetesObject;
  mergePatchStatus(primary: KubernetesObject, status: object): Promise<ResourceWrite>;
}

/** Keeps ids in the status of the primaries: a single id as a text, the ids of items as an object by their keys. */
export class StatusState implements ExternalStateStore {
  readonly #options: StatusStateOptions;

  constructor(options: StatusStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): Ids {
    const { path, latest } = this.#options;
    return readIdsAt(latest(primary), ["status", ...path]);
  }

  async set(primary: KubernetesObject, key: string, id: string | undefined): Promise<void> {
    const { path, isBulk, mergePatchStatus } = this.#options;
    if (id === undefined && !this.read(primary).has(key)) return;
    const value = id ?? null;
    await mergePatchStatus(primary, nest(path, isBulk ? { [key]: value } : value));
  }
}
