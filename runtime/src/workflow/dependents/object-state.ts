// What is kept of external resources, in objects beside their primary: ConfigMaps, Secrets, or objects of a kind of the user's.
import { createHash } from "node:crypto";
import {
  describeObject,
  keyOf,
  objectIn,
  type KubernetesObject,
  type ObjectKey,
} from "../../base/kubernetes-object.js";
import { CONTROLLER_LABEL, isOwnedBy } from "../../base/primary-link.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { KeptState, ObjectState } from "../definition/workflow-definition.js";
import { idIn, nest, NO_STATES, readStates, readStatesAt, withState } from "./external-state.js";
import type { ExternalStateStore, StateForm, States } from "./external-state.js";

/** The label of the objects that keep ids, with the name of the controller, as far as that is a value of a label. */
export const STATE_LABEL = "gen-operator.dev/external-state";

/** The annotations of an object that keeps the id of one item. */
const STATE_OF = "gen-operator.dev/external-state-of";
const STATE_ITEM = "gen-operator.dev/external-state-item";

interface ObjectStateOptions {
  readonly dependent: string;
  /** The names that the dependent had in earlier versions: states that are kept under them are its own. */
  readonly movedFrom?: readonly string[] | undefined;
  readonly form: StateForm;
  readonly state: ObjectState;
  readonly primary: ResourceDefinition;
  readonly label: string;
  readonly view: Pick<ResourceView, "get">;
  ownedBy(primary: KubernetesObject): readonly KubernetesObject[];
  apply(object: Pick<KubernetesObject, "metadata">, primary: KubernetesObject): Promise<unknown>;
  delete(object: KubernetesObject, primary: KubernetesObject): Promise<unknown>;
  warn(text: string, primary: KubernetesObject): void;
}

/** An object that keeps states of a primary. */
interface Keeper {
  readonly object: KubernetesObject;
  /** The item whose state alone it keeps; absent if the states are together. */
  readonly item: string | undefined;
  /** Whether an earlier version of the operator kept them there: under a former name of the dependent, or in the other form. */
  readonly isFormer: boolean;
}

/** Keeps states in one object for each primary, or in one for each item, which the garbage collector deletes after the primary. */
export class ObjectStateStore implements ExternalStateStore {
  readonly #options: ObjectStateOptions;
  /** The last change of the states of each primary: one that states or moves them all waits for the one before. */
  readonly #turns = new Map<ObjectKey, Promise<void>>();

  constructor(options: ObjectStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): States {
    return new Map(this.#keepersOf(primary).flatMap((keeper) => [...this.#statesIn(keeper)]));
  }

  isMoving(primary: KubernetesObject): boolean {
    return this.#keepersOf(primary).some(({ isFormer }) => isFormer);
  }

  async set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void> {
    if (this.#options.state.perItem === true && !this.isMoving(primary)) return this.#change(primary, key, state);
    const name = keyOf(primary.metadata);
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before.catch(() => {}).then(() => this.#change(primary, key, state));
    this.#turns.set(name, turn);
    await turn.finally(() => this.#turns.get(name) === turn && this.#turns.delete(name));
  }

  // The present objects come last, as they count more.
  #keepersOf(primary: KubernetesObject): Keeper[] {
    const { dependent, movedFrom = [], state, view, ownedBy } = this.#options;
    const keepersAs = (name: string) => {
      const shared = view.get(keyOf({ ...primary.metadata, name: this.#nameOf(primary, name) }))?.object;
      const ofItems = ownedBy(primary).filter(({ metadata }) => metadata.annotations?.[STATE_OF] === name);
      return [shared, ...ofItems].flatMap((object) => {
        // An object of an earlier primary of the name, which the garbage collector will delete, tells nothing of this one.
        if (object === undefined || !isOwnedBy(object.metadata, primary.metadata)) return [];
        const item = object.metadata.annotations?.[STATE_ITEM];
        const isOtherForm = (item !== undefined) !== (state.perItem === true);
        return [{ object, item, isFormer: name !== dependent || isOtherForm }];
      });
    };
    const keepers = [dependent, ...movedFrom].reverse().flatMap(keepersAs);
    return keepers.sort((a, b) => Number(b.isFormer) - Number(a.isFormer));
  }

  #statesIn({ object, item, isFormer }: Keeper): States {
    const { dependent, state } = this.#options;
    const states = decodeStates(object, { ...this.#options, item });
    if (isFormer && states.size === 0 && state.kind === "resource")
      throw new Error(
        `${describeObject(object, object.metadata)} keeps ids of "${dependent}", and has none at ${state.path.join(".")}; go back to ` +
          "the state that the earlier version had, or delete the object if its resources are gone",
      );
    return item === undefined ? states : withState(NO_STATES, item, states.get(""));
  }

  async #change(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void> {
    const { dependent, state: where, warn } = this.#options;
    const keepers = this.#keepersOf(primary).map((keeper) => ({ ...keeper, kept: this.#statesIn(keeper) }));
    const before = new Map(keepers.flatMap(({ kept }) => [...kept]));
    if (state === undefined && !before.has(key)) return;
    const states = withState(before, key, state);
    if (where.perItem === true) {
      const moved = keepers.flatMap(({ isFormer, kept }) => (isFormer ? [...kept.keys()] : []));
      const items = [...new Set([key, ...moved])].filter((item) => states.has(item));
      await Promise.all(items.map((item) => this.#apply(primary, withState(NO_STATES, "", states.get(item)), item)));
    } else if (states.size > 0) await this.#apply(primary, states);
    // Only now, so that an id is always kept somewhere.
    const isEmpty = state === undefined && (where.perItem === true || states.size === 0);
    for (const { object, isFormer, kept } of keepers) {
      if (!isFormer && !(isEmpty && kept.has(key))) continue;
      for (const [item, former] of kept) {
        const now = states.get(item);
        if (now === undefined || idIn(now) === idIn(former)) continue;
        // An operator that went back to an earlier version, and forth again, may have created in both places.
        const id = where.kind === "secret" ? "another id" : `the id "${idIn(former)}"`;
        const place = `${describeObject(object, object.metadata)} keeps ${id} of an earlier version`;
        warn(`${place}; "${dependent}" has an id already, so that resource is left`, primary);
      }
      await this.#options.delete(object, primary);
    }
  }

  async #apply(primary: KubernetesObject, states: States, item?: string): Promise<void> {
    const { dependent, label, primary: kind } = this.#options;
    const { name, namespace, uid = "" } = primary.metadata;
    const metadata = {
      name: this.#nameOf(primary, dependent, item),
      namespace,
      labels: { [STATE_LABEL]: label, [CONTROLLER_LABEL]: label },
      ...(item === undefined ? {} : { annotations: { [STATE_OF]: dependent, [STATE_ITEM]: item } }),
      ownerReferences: [{ apiVersion: kind.apiVersion, kind: kind.kind, name, uid, controller: true }],
    };
    await this.#options.apply({ metadata, ...encodeStates(states, { ...this.#options, item }) }, primary);
  }

  // A name of an object has 253 characters at most (1.36, IsDNS1123Subdomain); the hash differs for all that the readable part may not tell apart.
  #nameOf({ metadata: { name } }: KubernetesObject, dependent: string, item?: string): string {
    const { label, primary: kind } = this.#options;
    const facts = [label, kind.kind, kind.group, name, dependent, ...(item === undefined ? [] : [item])];
    const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 8);
    const readable = `${name}-${dependent.replace(/[^A-Za-z0-9-]/g, "-").toLowerCase()}`;
    return `${readable.slice(0, 237).replace(/[.-]+$/, "")}-${hash}-state`;
  }
}

type Place = Pick<ObjectStateOptions, "state" | "form"> & Pick<Keeper, "item">;

function encodeStates(states: States, { state: { kind, ...place }, form, item }: Place): object {
  if ("path" in place)
    return nest(place.path, form.isMap && item === undefined ? Object.fromEntries(states) : states.get(""));
  const textOf = (state: KeptState) => (typeof state === "string" ? state : JSON.stringify(state));
  const encode = (text: string) => (kind === "secret" ? Buffer.from(text).toString("base64") : text);
  return { data: Object.fromEntries([...states].map(([key, state]) => [encodeKey(key), encode(textOf(state))])) };
}

function decodeStates(object: KubernetesObject, { state, form, item }: Place): States {
  if (state.kind === "resource")
    return readStatesAt(object, state.path, { ...form, isMap: form.isMap && item === undefined });
  const decode = (text: string) => (state.kind === "secret" ? Buffer.from(text, "base64").toString() : text);
  const { data = {} } = object as { data?: { readonly [key: string]: string } };
  const entries = Object.entries(data).map(([key, value]) => {
    const text = decode(value);
    return [decodeKey(key), (form.isObject ? objectIn(text) : undefined) ?? text] as const;
  });
  return readStates(entries, form.isObject);
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

// Undefined for a key that somebody else wrote.
function decodeKey(encoded: string): string | undefined {
  if (encoded === "id") return "";
  if (!encoded.startsWith("item.")) return undefined;
  try {
    return decodeURIComponent(encoded.slice("item.".length).replace(/_([0-9a-f]{2})/g, "%$1"));
  } catch {
    return undefined;
  }
}
