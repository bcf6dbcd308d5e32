import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { DriverRun } from "./driver.js";
import type { ExternalStateStore, KnownIds } from "./external-state.js";

type Run = Pick<DriverRun, "primary">;

/** What is known of one primary; one that is made anew under the name has another uid. */
interface Remembered {
  readonly uid: string | undefined;
  readonly ids: ReadonlyMap<string, string>;
}

const NONE: ReadonlyMap<string, string> = new Map<string, string>();

/**
 * Kept ids that are not lost while the process knows them: neither when they cannot be written, nor when somebody deletes what they are
 * kept in. What somebody changes there is taken as it is.
 */
export class RememberedState implements KnownIds {
  readonly #kept: ExternalStateStore;
  readonly #known = new Map<ObjectKey, Remembered>();

  constructor(kept: ExternalStateStore) {
    this.#kept = kept;
  }

  read(primary: KubernetesObject): ReadonlyMap<string, string> {
    const kept = this.#kept.read(primary);
    const known = this.#of(primary);
    if (kept.size === 0) return known;
    const isNews = [...kept].some(([key, id]) => known.get(key) !== id);
    return isNews ? this.#remember(primary, new Map([...known, ...kept])) : known;
  }

  isKept(primary: KubernetesObject, key: string, id: string): boolean {
    return this.#kept.read(primary).get(key) === id;
  }

  async write(run: Run, key: string, id: string): Promise<void> {
    this.#remember(run.primary, new Map([...this.read(run.primary), [key, id]]));
    await this.#kept.write(run, key, id);
  }

  async remove(run: Run, key: string): Promise<void> {
    await this.#kept.remove(run, key);
    this.#remember(run.primary, new Map([...this.read(run.primary)].filter(([other]) => other !== key)));
  }

  forget(primary: ObjectKey): void {
    this.#known.delete(primary);
  }

  #of({ metadata }: KubernetesObject): ReadonlyMap<string, string> {
    const known = this.#known.get(keyOf(metadata));
    return known !== undefined && known.uid === metadata.uid ? known.ids : NONE;
  }

  #remember({ metadata }: KubernetesObject, ids: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    if (ids.size === 0) this.#known.delete(keyOf(metadata));
    else this.#known.set(keyOf(metadata), { uid: metadata.uid, ids });
    return ids;
  }
}
