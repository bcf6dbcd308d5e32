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
import { idIn, nest, NO_STATES, readState, readStatesAt, withState } from "./external-state.js";
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

/** Keeps states in one object for each primary, or in one for each item, which the garbage collector deletes after the primary. */
export class ObjectStateStore implements ExternalStateStore {
  readonly #options: ObjectStateOptions;
  /** The last change of the states of each primary: a change states them all, so it waits for the one before. */
  readonly #turns = new Map<ObjectKey, Promise<void>>();

  constructor(options: ObjectStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): States {
    // What is kept under the present name counts more.
    return new Map(this.#names.reverse().flatMap((name) => [...this.#readAs(name, primary)]));
  }

  isMoving(primary: KubernetesObject, key: string): boolean {
    return (this.#options.movedFrom ?? []).some((name) => this.#readAs(name, primary).has(key));
  }

  get #names(): string[] {
    const { dependent, movedFrom = [] } = this.#options;
    return [dependent, ...movedFrom];
  }

  #readAs(dependent: string, primary: KubernetesObject): States {
    if (!this.#isPerItem) return this.#statesIn(this.#liveOf(primary, { dependent }), primary);
    const { ownedBy } = this.#options;
    const states = new Map<string, KeptState>();
    for (const object of ownedBy(primary)) {
      const { annotations = {} } = object.metadata;
      const state = this.#statesIn(object, primary).get("");
      if (annotations[STATE_OF] === dependent && state !== undefined) states.set(annotations[STATE_ITEM] ?? "", state);
    }
    return states;
  }

  async set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void> {
    if (this.#isPerItem) return this.#keep(primary, withState(NO_STATES, "", state), key);
    const name = keyOf(primary.metadata);
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before
      .catch(() => {})
      .then(async () => {
        const states = this.read(primary);
        if (state !== undefined || states.has(key)) await this.#keep(primary, withState(states, key, state));
      });
    this.#turns.set(name, turn);
    await turn.finally(() => this.#turns.get(name) === turn && this.#turns.delete(name));
  }

  get #isPerItem(): boolean {
    return this.#options.state.perItem === true;
  }

  // An object of an earlier primary of the name, which the garbage collector will delete, tells nothing of this one.
  #statesIn(object: KubernetesObject | undefined, { metadata }: KubernetesObject): States {
    return object !== undefined && isOwnedBy(object.metadata, metadata)
      ? decodeStates(object, this.#options)
      : NO_STATES;
  }

  async #keep(primary: KubernetesObject, states: States, item?: string): Promise<void> {
    const { dependent, label, primary: kind } = this.#options;
    const { name, namespace, uid = "" } = primary.metadata;
    if (states.size === 0) return this.#delete(primary, this.#names, { item, states });
    const metadata = {
      name: this.#nameOf(name, dependent, item),
      namespace,
      labels: { [STATE_LABEL]: label, [CONTROLLER_LABEL]: label },
      ...(item === undefined ? {} : { annotations: { [STATE_OF]: dependent, [STATE_ITEM]: item } }),
      ownerReferences: [{ apiVersion: kind.apiVersion, kind: kind.kind, name, uid, controller: true }],
    };
    await this.#options.apply({ metadata, ...encodeStates(states, this.#options) }, primary);
    // Only now, so that an id is always kept somewhere.
    await this.#delete(primary, this.#options.movedFrom ?? [], { item, states });
  }

  // An operator that went back to an earlier version, and forth again, may have created under both names.
  async #delete(
    primary: KubernetesObject,
    names: readonly string[],
    { item, states }: { readonly item: string | undefined; readonly states: States },
  ): Promise<void> {
    for (const dependent of names) {
      const live = this.#liveOf(primary, { dependent, item });
      if (live === undefined || !isOwnedBy(live.metadata, primary.metadata)) continue;
      for (const [key, state] of this.#statesIn(live, primary)) {
        const kept = states.get(key);
        if (kept === undefined || idIn(kept) === idIn(state)) continue;
        const id = this.#options.state.kind === "secret" ? "another id" : `the id "${idIn(state)}"`;
        const place = `${describeObject(live, live.metadata)} keeps ${id} under the earlier name "${dependent}"`;
        this.#options.warn(
          `${place}; "${this.#options.dependent}" has an id already, so that resource is left`,
          primary,
        );
      }
      await this.#options.delete(live, primary);
    }
  }

  #liveOf(
    { metadata: { name, namespace } }: KubernetesObject,
    { dependent, item }: { readonly dependent: string; readonly item?: string | undefined },
  ): KubernetesObject | undefined {
    const key = keyOf({ name: this.#nameOf(name, dependent, item), namespace });
    return this.#options.view.get(key)?.object;
  }

  // A name of an object has 253 characters at most (1.36, IsDNS1123Subdomain); the hash differs for all that the readable part may not tell apart.
  #nameOf(name: string, dependent: string, item?: string): string {
    const { label, primary } = this.#options;
    const facts = [label, primary.kind, primary.group, name, dependent, ...(item === undefined ? [] : [item])];
    const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 8);
    const readable = `${name}-${dependent.replace(/[^A-Za-z0-9-]/g, "-").toLowerCase()}`;
    return `${readable.slice(0, 237).replace(/[.-]+$/, "")}-${hash}-state`;
  }
}

type Place = Pick<ObjectStateOptions, "state" | "form">;

function encodeStates(states: States, { state: { kind, ...place }, form }: Place): object {
  if ("path" in place) return nest(place.path, form.isMap ? Object.fromEntries(states) : states.get(""));
  const textOf = (state: KeptState) => (typeof state === "string" ? state : JSON.stringify(state));
  const encode = (text: string) => (kind === "secret" ? Buffer.from(text).toString("base64") : text);
  return { data: Object.fromEntries([...states].map(([key, state]) => [encodeKey(key), encode(textOf(state))])) };
}

function decodeStates(object: KubernetesObject, { state, form }: Place): States {
  if (state.kind === "resource") return readStatesAt(object, state.path, form);
  const decode = (text: string) => (state.kind === "secret" ? Buffer.from(text, "base64").toString() : text);
  const { data = {} } = object as { data?: { readonly [key: string]: string } };
  return new Map(
    Object.entries(data).flatMap(([key, value]) => {
      const text = decode(value);
      const read = readState((form.isObject ? objectIn(text) : undefined) ?? text, form);
      const item = decodeKey(key);
      return read === undefined || item === undefined ? [] : [[item, read] as const];
    }),
  );
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
