// The ids of external resources in objects beside their primary: ConfigMaps, Secrets, or objects of a kind of the user's.
import { createHash } from "node:crypto";
import { keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { CONTROLLER_LABEL } from "../../base/primary-link.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { ObjectState } from "../definition/workflow-definition.js";
import type { DriverRun } from "./driver.js";
import type { ExternalStateStore } from "./external-state.js";

/** The label of the objects that keep ids, with the name of the controller, as far as that is a value of a label. */
export const STATE_LABEL = "gen-operator.dev/external-state";

/** The annotations of an object that keeps the id of one item. */
const STATE_OF = "gen-operator.dev/external-state-of";
const STATE_ITEM = "gen-operator.dev/external-state-item";

/** What the objects of one dependent are written with. */
export interface ObjectStateOptions {
  readonly dependent: string;
  /** Whether there is an id for each item. */
  readonly isBulk: boolean;
  readonly state: ObjectState;
  /** The kind of the primaries. */
  readonly primary: ResourceDefinition;
  /** The value of the label. */
  readonly label: string;
  readonly view: Pick<ResourceView, "get">;
  /** Returns the objects of the view that a primary owns. */
  ownedBy(primary: KubernetesObject): readonly KubernetesObject[];
  apply(object: Pick<KubernetesObject, "metadata">): Promise<unknown>;
  delete(object: KubernetesObject): Promise<unknown>;
}

type Run = Pick<DriverRun, "primary">;
type Ids = ReadonlyMap<string, string>;

const NONE: Ids = new Map<string, string>();

/** Keeps ids in one object for each primary, or in one for each item, which goes with the primary. */
export class ObjectStateStore implements ExternalStateStore {
  readonly #options: ObjectStateOptions;
  readonly #turns = new Turns();

  constructor(options: ObjectStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): Ids {
    if (!this.#isPerItem) return this.#idsIn(this.#liveOf(primary), primary);
    const own = this.#options.ownedBy(primary).filter((object) => this.#isOwn(object));
    return new Map(
      own.flatMap((object) => {
        const id = this.#idsIn(object, primary).get("");
        return id === undefined ? [] : [[object.metadata.annotations?.[STATE_ITEM] ?? "", id] as const];
      }),
    );
  }

  write({ primary }: Run, key: string, id: string): Promise<void> {
    if (this.#isPerItem) return this.#apply(primary, new Map([["", id]]), key);
    return this.#turns.take(keyOf(primary.metadata), () =>
      this.#apply(primary, new Map([...this.read(primary), [key, id]])),
    );
  }

  async remove({ primary }: Run, key: string): Promise<void> {
    if (this.#isPerItem) return this.#delete(this.#liveOf(primary, key));
    await this.#turns.take(keyOf(primary.metadata), async () => {
      const ids = this.read(primary);
      if (!ids.has(key)) return;
      const left = new Map([...ids].filter(([other]) => other !== key));
      if (left.size > 0) await this.#apply(primary, left);
      else await this.#delete(this.#liveOf(primary));
    });
  }

  get #isPerItem(): boolean {
    return this.#options.isBulk && this.#options.state.perItem === true;
  }

  #isOwn({ metadata: { annotations = {} } }: KubernetesObject): boolean {
    return annotations[STATE_OF] === this.#options.dependent;
  }

  // An object of an earlier primary of the name, which is about to be collected, tells nothing of this one.
  #idsIn(object: KubernetesObject | undefined, { metadata }: KubernetesObject): Ids {
    const isOfPrimary = object?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true;
    return isOfPrimary ? decodeIds(object!, this.#options.state) : NONE;
  }

  async #apply(primary: KubernetesObject, ids: Ids, item?: string): Promise<void> {
    const { dependent, label, primary: kind, state, isBulk } = this.#options;
    const { name, namespace, uid = "" } = primary.metadata;
    const annotations = item === undefined ? {} : { annotations: { [STATE_OF]: dependent, [STATE_ITEM]: item } };
    await this.#options.apply({
      metadata: {
        name: nameOf(name, dependent, item),
        namespace,
        labels: { [STATE_LABEL]: label, [CONTROLLER_LABEL]: label },
        ...annotations,
        ownerReferences: [{ apiVersion: kind.apiVersion, kind: kind.kind, name, uid, controller: true }],
      },
      ...encodeIds(ids, { state, isMap: isBulk && !this.#isPerItem }),
    });
  }

  async #delete(object: KubernetesObject | undefined): Promise<void> {
    if (object !== undefined) await this.#options.delete(object);
  }

  #liveOf({ metadata: { name, namespace } }: KubernetesObject, item?: string): KubernetesObject | undefined {
    const key = keyOf({ name: nameOf(name, this.#options.dependent, item), namespace });
    return this.#options.view.get(key)?.object;
  }
}

function encodeIds(ids: Ids, { state, isMap }: { readonly state: ObjectState; readonly isMap: boolean }): object {
  if (state.kind === "resource") {
    const value = isMap ? Object.fromEntries(ids) : ids.get("");
    return state.path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as object;
  }
  const encode = (id: string) => (state.kind === "secret" ? Buffer.from(id).toString("base64") : id);
  return { data: Object.fromEntries([...ids].map(([key, id]) => [encodeKey(key), encode(id)])) };
}

function decodeIds(object: KubernetesObject, state: ObjectState): Ids {
  if (state.kind === "resource") {
    const found = state.path.reduce<unknown>(
      (value, name) => (value as Record<string, unknown> | undefined)?.[name],
      object,
    );
    if (typeof found === "string") return new Map([["", found]]);
    return new Map(Object.entries((found ?? {}) as Record<string, string>));
  }
  const { data = {} } = object as { readonly data?: { readonly [key: string]: string } };
  const decode = (id: string) => (state.kind === "secret" ? Buffer.from(id, "base64").toString() : id);
  return new Map(Object.entries(data).map(([key, id]) => [decodeKey(key), decode(id)]));
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
function nameOf(primary: string, dependent: string, item?: string): string {
  const facts = [primary, dependent, ...(item === undefined ? [] : [item])];
  const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 8);
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
