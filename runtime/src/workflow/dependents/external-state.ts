// Where the ids of external resources are kept that nothing but the runtime knows (JOSDK DependentResourceWithExplicitState).
import type { KubernetesObject } from "../../base/kubernetes-object.js";
import type { ResourceWrite } from "../../write/kind-operations.js";
import type { DriverRun } from "./driver.js";

/** Keeps the ids of the resources of one dependent, by the keys of items; the key is empty unless the dependent is a bulk one. */
export interface ExternalStateStore {
  /** Returns what is kept for a primary, what was written last included. */
  read(primary: KubernetesObject): ReadonlyMap<string, string>;
  write(run: Pick<DriverRun, "primary">, key: string, id: string): Promise<void>;
  /** Forgets an id whose resource is gone. */
  remove(run: Pick<DriverRun, "primary">, key: string): Promise<void>;
}

/** Kept ids as a driver works with them: some may be known and not kept yet, or not any more. */
export interface KnownIds extends ExternalStateStore {
  /** Tells whether an id is kept under a key. */
  isKept(primary: KubernetesObject, key: string, id: string): boolean;
}

const NONE: ReadonlyMap<string, string> = new Map<string, string>();

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

/** Keeps ids in the status of the primaries: one as a text, those of items as an object by their keys. */
export class StatusState implements ExternalStateStore {
  readonly #options: StatusStateOptions;

  constructor(options: StatusStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): ReadonlyMap<string, string> {
    const { path, isBulk, latest } = this.#options;
    const { status } = latest(primary) as { readonly status?: unknown };
    const found = path.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], status);
    if (!isBulk) return typeof found === "string" ? new Map([["", found]]) : NONE;
    return new Map(Object.entries((found ?? {}) as Record<string, string>));
  }

  write({ primary }: Pick<DriverRun, "primary">, key: string, id: string): Promise<void> {
    return this.#patch(primary, key, id);
  }

  async remove({ primary }: Pick<DriverRun, "primary">, key: string): Promise<void> {
    if (this.read(primary).has(key)) await this.#patch(primary, key, null);
  }

  async #patch(primary: KubernetesObject, key: string, id: string | null): Promise<void> {
    const { path, isBulk, mergePatchStatus } = this.#options;
    const value = isBulk ? { [key]: id } : id;
    const status = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    await mergePatchStatus(primary, status as object);
  }
}
