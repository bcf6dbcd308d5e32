import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { NO_IDS, withId, type ExternalStateStore, type Ids } from "./external-state.js";

/**
 * Kept ids that are not lost while the process knows them: neither when they cannot be written, nor when somebody deletes the object that
 * keeps them. What somebody changes there counts.
 */
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

  /** Forgets a primary that is gone. */
  forget(primary: ObjectKey): void {
    this.#known.delete(primary);
  }

  #remember({ metadata }: KubernetesObject, ids: Ids): Ids {
    if (ids.size === 0) this.#known.delete(keyOf(metadata));
    else this.#known.set(keyOf(metadata), { uid: metadata.uid, ids });
    return ids;
  }
}
