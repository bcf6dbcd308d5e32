// The ids of external resources in objects beside their primary: ConfigMaps, Secrets, or objects of a kind of the user's.
import { createHash } from "node:crypto";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { CONTROLLER_LABEL, isOwnedBy } from "../../base/primary-link.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { ObjectState } from "../definition/workflow-definition.js";
import { nest, NO_IDS, readIdsAt, withId, type ExternalStateStore, type Ids } from "./external-state.js";

/** The label of the objects that keep ids, with the name of the controller, as far as that is a value of a label. */
export const STATE_LABEL = "gen-operator.dev/external-state";

/** The annotations of an object that keeps the id of one item. */
const STATE_OF = "gen-operator.dev/external-state-of";
const STATE_ITEM = "gen-operator.dev/external-state-item";

interface ObjectStateOptions {
  readonly dependent: string;
  readonly isBulk: boolean;
  readonly state: ObjectState;
  readonly primary: ResourceDefinition;
  readonly label: string;
  readonly view: Pick<ResourceView, "get">;
  ownedBy(primary: KubernetesObject): readonly KubernetesObject[];
  apply(object: Pick<KubernetesObject, "metadata">): Promise<unknown>;
  delete(object: KubernetesObject): Promise<unknown>;
}

/** Keeps ids in one object for each primary, or in one for each item, which the garbage collector deletes after the primary. */
export class ObjectStateStore implements ExternalStateStore {
  readonly #options: ObjectStateOptions;
  /** The last change of the ids of each primary: a change states all ids, so it waits for the one before. */
  readonly #turns = new Map<ObjectKey, Promise<void>>();

  constructor(options: ObjectStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): Ids {
    if (!this.#isPerItem) return this.#idsIn(this.#liveOf(primary), primary);
    const { dependent, ownedBy } = this.#options;
    const ids = new Map<string, string>();
    for (const object of ownedBy(primary)) {
      const { annotations = {} } = object.metadata;
      const id = this.#idsIn(object, primary).get("");
      if (annotations[STATE_OF] === dependent && id !== undefined) ids.set(annotations[STATE_ITEM] ?? "", id);
    }
    return ids;
  }

  async set(primary: KubernetesObject, key: string, id: string | undefined): Promise<void> {
    if (this.#isPerItem) return this.#keep(primary, withId(NO_IDS, "", id), key);
    const name = keyOf(primary.metadata);
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before
      .catch(() => {})
      .then(async () => {
        const ids = this.read(primary);
        if (id !== undefined || ids.has(key)) await this.#keep(primary, withId(ids, key, id));
      });
    this.#turns.set(name, turn);
    await turn.finally(() => this.#turns.get(name) === turn && this.#turns.delete(name));
  }

  get #isPerItem(): boolean {
    return this.#options.isBulk && this.#options.state.perItem === true;
  }

  // An object of an earlier primary of the name, which the garbage collector will delete, tells nothing of this one.
  #idsIn(object: KubernetesObject | undefined, { metadata }: KubernetesObject): Ids {
    return object !== undefined && isOwnedBy(object.metadata, metadata)
      ? decodeIds(object, this.#options.state)
      : NO_IDS;
  }

  async #keep(primary: KubernetesObject, ids: Ids, item?: string): Promise<void> {
    const { dependent, label, primary: kind, state, isBulk } = this.#options;
    const { name, namespace, uid = "" } = primary.metadata;
    const live = this.#liveOf(primary, item);
    if (ids.size === 0) {
      if (live !== undefined) await this.#options.delete(live);
      return;
    }
    await this.#options.apply({
      metadata: {
        name: nameOf(name, dependent, item),
        namespace,
        labels: { [STATE_LABEL]: label, [CONTROLLER_LABEL]: label },
        ...(item === undefined ? {} : { annotations: { [STATE_OF]: dependent, [STATE_ITEM]: item } }),
        ownerReferences: [{ apiVersion: kind.apiVersion, kind: kind.kind, name, uid, controller: true }],
      },
      ...encodeIds(ids, { state, isMap: isBulk && !this.#isPerItem }),
    });
  }

  #liveOf({ metadata: { name, namespace } }: KubernetesObject, item?: string): KubernetesObject | undefined {
    const key = keyOf({ name: nameOf(name, this.#options.dependent, item), namespace });
    return this.#options.view.get(key)?.object;
  }
}

function encodeIds(ids: Ids, { state, isMap }: { readonly state: ObjectState; readonly isMap: boolean }): object {
  if (state.kind === "resource") return nest(state.path, isMap ? Object.fromEntries(ids) : ids.get(""));
  const encode = (id: string) => (state.kind === "secret" ? Buffer.from(id).toString("base64") : id);
  return { data: Object.fromEntries([...ids].map(([key, id]) => [encodeKey(key), encode(id)])) };
}

function decodeIds(object: KubernetesObject, state: ObjectState): Ids {
  if (state.kind === "resource") return readIdsAt(object, state.path);
  const decode = (id: string) => (state.kind === "secret" ? Buffer.from(id, "base64").toString() : id);
  return new Map([...readIdsAt(object, ["data"])].map(([key, id]) => [decodeKey(key), decode(id)]));
}

// A name of an object has 253 characters at most (1.36, IsDNS1123Subdomain); the hash differs for names that are shortened, or differ in case.
function nameOf(primary: string, dependent: string, item?: string): string {
  const facts = [primary, dependent, ...(item === undefined ? [] : [item])];
  const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 8);
  const readable = `${primary}-${dependent.replace(/[^A-Za-z0-9-]/g, "-").toLowerCase()}`;
  return `${readable.slice(0, 237).replace(/[.-]+$/, "")}-${hash}-state`;
}

// A key of a ConfigMap has letters, digits, hyphens, underscores and dots (1.36, IsConfigMapKey); an underscore escapes any other.
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
