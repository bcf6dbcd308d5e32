// Where the ids of external resources are kept that nothing but the runtime knows (JOSDK DependentResourceWithExplicitState).
import { createHash } from "node:crypto";
import { keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { CONTROLLER_LABEL } from "../../base/primary-link.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ResourceView } from "../../cache/resource-view.js";
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

/** The label of the ConfigMaps that keep ids, with the name of the controller, as far as that is a value of a label. */
export const STATE_LABEL = "gen-operator.dev/external-state";

/** What the ConfigMaps of one dependent are written with. */
export interface ConfigMapStateOptions {
  readonly dependent: string;
  /** The kind of the primaries. */
  readonly primary: ResourceDefinition;
  /** The value of the labels: what stands for the name of the controller. */
  readonly label: string;
  readonly view: Pick<ResourceView, "get">;
  apply(object: AppliedConfigMap): Promise<unknown>;
  delete(object: KubernetesObject): Promise<unknown>;
}

/** What is applied. */
export interface AppliedConfigMap extends Pick<KubernetesObject, "metadata"> {
  readonly data: { readonly [key: string]: string };
}

const NONE: ReadonlyMap<string, string> = new Map<string, string>();

/** Keeps ids in one ConfigMap for each primary, which goes with the primary. */
export class ConfigMapState implements ExternalStateStore {
  readonly #options: ConfigMapStateOptions;
  readonly #turns = new Turns();

  constructor(options: ConfigMapStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): ReadonlyMap<string, string> {
    const live = this.#liveOf(primary);
    // That of an earlier primary of the name, which is about to be collected, tells nothing of this one.
    if (live?.metadata.ownerReferences?.some(({ uid }) => uid === primary.metadata.uid) !== true) return NONE;
    const { data = {} } = live as { readonly data?: { readonly [key: string]: string } };
    return new Map(Object.entries(data).map(([key, id]) => [decodeKey(key), id]));
  }

  write({ primary }: Pick<DriverRun, "primary">, key: string, id: string): Promise<void> {
    return this.#turns.take(keyOf(primary.metadata), async () => {
      await this.#apply(primary, new Map([...this.read(primary), [key, id]]));
    });
  }

  remove({ primary }: Pick<DriverRun, "primary">, key: string): Promise<void> {
    return this.#turns.take(keyOf(primary.metadata), async () => {
      const ids = this.read(primary);
      if (!ids.has(key)) return;
      const left = new Map([...ids].filter(([other]) => other !== key));
      if (left.size > 0) await this.#apply(primary, left);
      else await this.#options.delete(this.#liveOf(primary)!);
    });
  }

  async #apply(primary: KubernetesObject, ids: ReadonlyMap<string, string>): Promise<void> {
    const { apiVersion, kind } = this.#options.primary;
    const { name, namespace, uid = "" } = primary.metadata;
    await this.#options.apply({
      metadata: {
        name: nameOf(name, this.#options.dependent),
        namespace,
        labels: { [STATE_LABEL]: this.#options.label, [CONTROLLER_LABEL]: this.#options.label },
        ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
      },
      data: Object.fromEntries([...ids].map(([key, id]) => [encodeKey(key), id])),
    } as AppliedConfigMap);
  }

  #liveOf({ metadata: { name, namespace } }: KubernetesObject): KubernetesObject | undefined {
    return this.#options.view.get(keyOf({ name: nameOf(name, this.#options.dependent), namespace }))?.object;
  }
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

/** Lets one change of the ids of a primary follow the other: each states all of them. */
class Turns {
  readonly #last = new Map<string, Promise<void>>();

  async take(key: string, work: () => Promise<void>): Promise<void> {
    const before = this.#last.get(key);
    const turn = (async () => {
      await before?.catch(() => {});
      await work();
    })();
    this.#last.set(key, turn);
    try {
      await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}

// A name of an object has 253 characters at most (1.36, IsDNS1123Subdomain); the hash tells apart what is shortened, or differs in case.
function nameOf(primary: string, dependent: string): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([primary, dependent]))
    .digest("hex")
    .slice(0, 8);
  const readable = `${primary}-${dependent.replace(/[^A-Za-z0-9-]/g, "-").toLowerCase()}`;
  return `${readable.slice(0, 237).replace(/[.-]+$/, "")}-${hash}-state`;
}

// A key of a ConfigMap has letters, digits, hyphens, underscores and dots (1.36, IsConfigMapKey); underscores begin what stands for others.
function encodeKey(key: string): string {
  if (key === "") return "id";
  const encoded = key.replace(/[^A-Za-z0-9.-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${byte.toString(16).padStart(2, "0")}`).join(""),
  );
  // A key of an item may be "id", or only dots, too.
  return `item.${encoded}`;
}

function decodeKey(encoded: string): string {
  if (encoded === "id") return "";
  return decodeURIComponent(encoded.slice("item.".length).replace(/_([0-9a-f]{2})/g, "%$1"));
}
