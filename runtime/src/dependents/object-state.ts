// Stores the ids of external resources in objects in the namespace of their primary: ConfigMaps, Secrets, or objects of a kind of the user.
import { createHash } from "node:crypto";
import { isApiError } from "../base/errors.js";
import {
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type ObjectRef,
  type ResourceDefinition,
  describeObject,
  keyOf,
  objectIn,
} from "../base/kubernetes-object.js";
import { CONTROLLER_LABEL, isOwnedBy } from "../base/primary-link.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { KeptState, ObjectState } from "../workflow/workflow-definition.js";
import {
  type ExternalStateStore,
  type Kept,
  type KeptStates,
  type LookUpOptions,
  type StateForm,
  type StateProofs,
  type Stored,
  annotationOf,
  idIn,
  nest,
  readState,
  valuesAt,
} from "./external-state.js";

/** Label of the objects that store ids. Its value is the name of the controller, converted to a valid label value. */
export const STATE_LABEL = "gen-operator.dev/external-state";

/** Annotations of an object that stores the id of one item. */
const STATE_OF = "gen-operator.dev/external-state-of";
const STATE_ITEM = "gen-operator.dev/external-state-item";

// The previous version reads only the key "id" and keys that start with "item.".
const PROOF_KEY = "mac";

interface ObjectStateOptions {
  readonly dependent: string;
  /** The former names of the dependent. States under these names belong to it. */
  readonly movedFrom?: readonly string[] | undefined;
  readonly form: StateForm;
  readonly state: ObjectState;
  readonly primary: ResourceDefinition;
  readonly label: string;
  /** The labels for the former names of the controller. */
  readonly formerLabels?: readonly string[] | undefined;
  readonly proofs: StateProofs;
  readonly view: Pick<ResourceView, "get">;
  ownedBy(primary: KubernetesObject): readonly KubernetesObject[];
  /** Reads an object from the API server, or returns undefined if it does not exist. */
  read(ref: ObjectRef, primary: KubernetesObject, signal?: AbortSignal): Promise<KubernetesObject | undefined>;
  /**
   * Applies an object. With a UID, fails with a conflict (409) unless the existing object has this UID; without one, fails with a conflict if an
   * object exists. So states that have not been read are not overwritten.
   */
  apply(object: Pick<KubernetesObject, "metadata">, primary: KubernetesObject): Promise<unknown>;
  delete(object: KubernetesObject, primary: KubernetesObject): Promise<unknown>;
  warn(text: string, primary: KubernetesObject): void;
}

interface StateChange {
  readonly key: string;
  /** Undefined to delete the state. */
  readonly state: KeptState | undefined;
}

/** The label value of a controller and the name of a dependent, current or former. */
type Names = readonly [label: string, dependent: string];

/** An object that was read by name because the watch does not contain it. */
interface FoundObject {
  readonly object: KubernetesObject;
  readonly names: Names;
}

interface ChangeOptions {
  readonly found?: readonly FoundObject[];
  /** Whether to sign unproven states. */
  readonly adopts?: boolean;
}

/** An object that stores states of a primary. */
interface Keeper {
  readonly object: KubernetesObject;
  /** The item, if each item has an object of its own. */
  readonly item: string | undefined;
  /** Whether an earlier version of the operator wrote it, under a former name of the dependent or in the other form. */
  readonly isFormer: boolean;
}

/** Stores states in one object per primary or per item. The garbage collector deletes it after the primary. */
export class ObjectStateStore implements ExternalStateStore {
  readonly #options: ObjectStateOptions;
  /** The names under which objects are found, current ones first. */
  readonly #names: readonly Names[];
  /** The last change of each primary's states. Later changes that write or move all states wait for it. */
  readonly #turns = new Map<ObjectKey, Promise<void>>();
  /** Caches the verified states for each version of an object. */
  readonly #judged = new WeakMap<KubernetesObject, { readonly uid: string | undefined; readonly kept: KeptStates }>();

  constructor(options: ObjectStateOptions) {
    const { dependent, movedFrom = [], label, formerLabels = [] } = options;
    this.#options = options;
    const dependents = [dependent, ...movedFrom];
    this.#names = [label, ...formerLabels].flatMap((each) => dependents.map((name): Names => [each, name]));
  }

  get isPerItem(): boolean {
    return this.#options.state.perItem === true;
  }

  read(primary: KubernetesObject): KeptStates {
    return merged(this.#keepersOf(primary).map((keeper) => this.#keptIn(keeper, primary)));
  }

  isMoving(primary: KubernetesObject): boolean {
    return this.#keepersOf(primary).some(({ isFormer }) => isFormer);
  }

  async set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void> {
    const change = () => this.#change(primary, { key, state });
    if (this.#options.state.perItem === true && !this.isMoving(primary)) return change();
    await this.#inTurn(primary, change);
  }

  async adopt(primary: KubernetesObject): Promise<number> {
    const unproven = [...this.read(primary)].filter(([, { standing }]) => standing === "unproven");
    const isApart = this.#options.state.perItem === true && !this.isMoving(primary);
    for (const [key, { state }] of isApart ? unproven : unproven.slice(0, 1))
      await this.#inTurn(primary, () => this.#change(primary, { key, state }, { adopts: true }));
    return unproven.length;
  }

  async lookUp(
    primary: KubernetesObject,
    key: string,
    { signal, isCleanup = false }: LookUpOptions = {},
  ): Promise<void> {
    const { view, read, state } = this.#options;
    const item = state.perItem === true ? key : undefined;
    const refs = this.#names.map((names) => ({ names, ref: this.#refOf(primary, names, item) }));
    const shownAt = ({ ref }: { ref: ObjectRef }) => view.get(keyOf(ref))?.object;
    const [present] = refs;
    const shown = shownAt(present!);
    if (shown !== undefined && isOwnedBy(shown.metadata, primary.metadata)) return;
    if (shown !== undefined && !isCleanup) this.#checkFree(shown, primary);
    const unseen = refs.filter((each) => shownAt(each) === undefined);
    const objects = await Promise.all(
      unseen.map(async ({ names, ref }) => ({ names, object: await read(ref, primary, signal) })),
    );
    const found = objects.flatMap(({ names, object }) => {
      if (object !== undefined && isOwnedBy(object.metadata, primary.metadata)) return [{ names, object }];
      if (object !== undefined && names === present!.names && !isCleanup) this.#checkFree(object, primary);
      return [];
    });
    // With the label and name of this controller, they become part of the watch.
    if (found.length > 0) await this.#inTurn(primary, () => this.#change(primary, undefined, { found }));
  }

  async #inTurn(primary: KubernetesObject, change: () => Promise<void>): Promise<void> {
    const name = keyOf(primary.metadata);
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before.catch(() => {}).then(change);
    this.#turns.set(name, turn);
    await turn.finally(() => this.#turns.get(name) === turn && this.#turns.delete(name));
  }

  // Current objects come last, because they take precedence.
  #keepersOf(primary: KubernetesObject, found: readonly FoundObject[] = []): Keeper[] {
    const { state, view, ownedBy, label } = this.#options;
    const owned = ownedBy(primary);
    const keepersAs = (names: Names) => {
      const [controller, dependent] = names;
      const shared = view.get(keyOf(this.#refOf(primary, names)))?.object;
      const isOfItem = ({ metadata: { annotations, labels } }: KubernetesObject) =>
        annotations?.[STATE_OF] === dependent && (labels?.[STATE_LABEL] ?? label) === controller;
      const unseen = found.filter((each) => each.names === names).map(({ object }) => object);
      return [...unseen, shared, ...owned.filter(isOfItem)].flatMap((object) => {
        // Ignore an object of a previous primary with the same name. The garbage collector will delete it.
        if (object === undefined || !isOwnedBy(object.metadata, primary.metadata)) return [];
        const item = object.metadata.annotations?.[STATE_ITEM];
        const isOtherForm = (item !== undefined) !== (state.perItem === true);
        return [{ object, item, isFormer: names !== this.#names[0] || isOtherForm }];
      });
    };
    const keepers = this.#names.toReversed().flatMap(keepersAs);
    return keepers.sort((a, b) => Number(b.isFormer) - Number(a.isFormer));
  }

  #keptIn({ object, item, isFormer }: Keeper, primary: KubernetesObject): KeptStates {
    const { dependent, state, form, proofs } = this.#options;
    const { uid } = primary.metadata;
    const judged = this.#judged.get(object);
    if (judged?.uid === uid && judged !== undefined) return judged.kept;
    const kept = new Map<string, Kept>();
    const what = describeObject(object, object.metadata);
    for (const { key, value, proof, at } of decodeStates(object, { state, form, item })) {
      const known = readState(value, form.isObject);
      if (known === undefined) continue;
      const standing = proofs.judge(primary, key, value, proof);
      kept.set(key, { state: known, value, proof, standing, place: `${at.state} of ${what}`, proofPlace: at.proof });
    }
    if (isFormer && kept.size === 0 && state.kind === "resource")
      throw new Error(
        `${what} keeps ids of "${dependent}", and has none at ${state.path.join(".")}; go back to ` +
          "the state that the earlier version had, or delete the object if its resources are gone",
      );
    this.#judged.set(object, { uid, kept });
    return kept;
  }

  async #change(
    primary: KubernetesObject,
    change: StateChange | undefined,
    { found, adopts = false }: ChangeOptions = {},
  ): Promise<void> {
    const { dependent, state: where, warn, proofs } = this.#options;
    const keepers = this.#keepersOf(primary, found).map((keeper) => ({
      ...keeper,
      kept: this.#keptIn(keeper, primary),
    }));
    const before = merged(keepers.map(({ kept }) => kept));
    if (change !== undefined && change.state === undefined && !before.has(change.key)) return;
    const sign = (key: string, value: unknown): Stored => ({ value, proof: proofs.sign(primary, key, value) });
    const states = new Map<string, Stored>();
    for (const [key, { state, standing, value, proof }] of before) {
      if (key === change?.key) continue;
      // An unproven state is kept: another client may have removed the proof, and the state is the only reference to the resource.
      states.set(key, standing !== "unproven" || adopts ? sign(key, state) : { value, proof });
    }
    if (change?.state !== undefined) states.set(change.key, sign(change.key, change.state));
    if (where.perItem === true) {
      const isMoved = ({ isFormer, object }: Keeper) =>
        isFormer || found?.some((each) => each.object === object) === true;
      const moved = keepers.flatMap((keeper) => (isMoved(keeper) ? [...keeper.kept.keys()] : []));
      const items = new Set([...(change === undefined ? [] : [change.key]), ...moved]);
      const apply = (item: string) => this.#apply(primary, new Map([["", states.get(item)!]]), { item, keepers });
      await Promise.all([...items].filter((item) => states.has(item)).map(apply));
    } else if (states.size > 0)
      await this.#apply(primary, states, { keepers, removed: change?.state === undefined ? change?.key : undefined });
    // Deleted last, so that each id is stored somewhere at any time.
    const isEmpty = change !== undefined && change.state === undefined && (where.perItem === true || states.size === 0);
    for (const { object, isFormer, kept } of keepers) {
      if (!isFormer && !(isEmpty && kept.has(change.key))) continue;
      for (const [item, former] of kept) {
        const now = states.get(item);
        const isOther = now !== undefined && idOf(now.value) !== idIn(former.state);
        if (!isOther || former.standing === "unproven") continue;
        // After a rollback and another upgrade, states may exist in both places.
        const id = where.kind === "secret" ? "another id" : `the id "${idIn(former.state)}"`;
        const place = `${describeObject(object, object.metadata)} keeps ${id} of an earlier version`;
        warn(`${place}; "${dependent}" has an id already, so that resource is left`, primary);
      }
      await this.#options.delete(object, primary);
    }
  }

  async #apply(
    primary: KubernetesObject,
    states: ReadonlyMap<string, Stored>,
    { item, keepers, removed }: { item?: string; keepers: readonly Keeper[]; removed?: string | undefined },
  ): Promise<void> {
    const { dependent, label, primary: kind, apply, read, state, form } = this.#options;
    const { name: owner, uid: ownerUid = "" } = primary.metadata;
    const ref = this.#refOf(primary, this.#names[0]!, item);
    const objectOf = (all: ReadonlyMap<string, Stored>, uid: string | undefined) => {
      const { annotations, ...body } = encodeStates(all, { state, form, item });
      const own = { ...(item === undefined ? {} : { [STATE_OF]: dependent, [STATE_ITEM]: item }), ...annotations };
      const metadata = {
        ...ref,
        ...(uid === undefined ? {} : { uid }),
        labels: { [STATE_LABEL]: label, [CONTROLLER_LABEL]: label },
        ...(Object.keys(own).length === 0 ? {} : { annotations: own }),
        ownerReferences: [
          { apiVersion: kind.apiVersion, kind: kind.kind, name: owner, uid: ownerUid, controller: true },
        ],
      };
      return { metadata, ...body };
    };
    const isPresent = ({ object }: Keeper) => object.metadata.name === ref.name;
    try {
      await apply(objectOf(states, keepers.find(isPresent)?.object.metadata.uid), primary);
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      // The object was created or deleted, and the watch has not delivered the event yet, or never will because the label was removed.
      const live = await read(ref, primary);
      const isOwn = live !== undefined && isOwnedBy(live.metadata, primary.metadata);
      if (live !== undefined && !isOwn) this.#checkFree(live, primary);
      const isLost = ([key, { standing }]: readonly [string, Kept]) =>
        standing !== "unproven" && key !== removed && !states.has(key);
      const lost =
        isOwn && item === undefined
          ? [...this.#keptIn({ object: live, item, isFormer: false }, primary)].filter(isLost)
          : [];
      const all = new Map<string, Stored>([...lost, ...states]);
      await apply(objectOf(all, live?.metadata.uid), primary);
    }
  }

  /** Throws if an object of another client has the name of the object that would store states. */
  #checkFree(object: KubernetesObject, primary: KubernetesObject): void {
    const { state, form } = this.#options;
    const item = object.metadata.annotations?.[STATE_ITEM];
    const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true);
    const hasStates = decodeStates(object, { state, form, item }).some(
      ({ value }) => readState(value, form.isObject) !== undefined,
    );
    if (owner === undefined && !hasStates) return;
    const whose = owner === undefined ? "keeps ids" : `belongs to ${owner.kind} "${owner.name}" (uid ${owner.uid})`;
    throw new Error(
      `${describeObject(object, object.metadata)} already exists and ${whose}, but is not owned by this primary (uid ${primary.metadata.uid}), which needs it ` +
        "to keep the ids of its external resources; delete the object if it is not needed",
    );
  }

  #refOf(primary: KubernetesObject, names: Names, item?: string): ObjectRef {
    const { namespace } = primary.metadata;
    return { name: this.#nameOf(primary, names, item), ...(namespace === undefined ? {} : { namespace }) };
  }

  // A name has at most 253 characters (Kubernetes 1.36, IsDNS1123Subdomain); the hash makes it unique.
  #nameOf({ metadata: { name } }: KubernetesObject, [label, dependent]: Names, item?: string): string {
    const { primary: kind } = this.#options;
    const facts = [label, kind.kind, kind.group, name, dependent, ...(item === undefined ? [] : [item])];
    const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 8);
    const readable = `${name}-${dependent.replace(/[^A-Za-z0-9-]/g, "-").toLowerCase()}`;
    return `${readable.slice(0, 237).replace(/[.-]+$/, "")}-${hash}-state`;
  }
}

// A proven state takes precedence over an unproven one. Otherwise, the later one takes precedence.
function merged(all: readonly KeptStates[]): KeptStates {
  const states = new Map<string, Kept>();
  for (const kept of all)
    for (const [key, each] of kept)
      if (each.standing !== "unproven" || (states.get(key)?.standing ?? "unproven") === "unproven")
        states.set(key, each);
  return states;
}

function idOf(value: unknown): string | undefined {
  const state = readState(typeof value === "string" ? (objectIn(value) ?? value) : value, false);
  return state === undefined ? undefined : idIn(state);
}

type Place = Pick<ObjectStateOptions, "state" | "form"> & Pick<Keeper, "item">;

interface StoredState extends Stored {
  readonly key: string;
  /** The positions of the state and its proof in the object. */
  readonly at: { readonly state: string; readonly proof: string };
}

function encodeStates(
  states: ReadonlyMap<string, Stored>,
  { state: { kind, ...place }, form, item }: Place,
): { readonly annotations?: ObjectMeta["annotations"] } & object {
  const entries = [...states];
  if ("path" in place) {
    const values = Object.fromEntries(entries.map(([key, { value }]) => [key, value]));
    const annotations = Object.fromEntries(
      entries.flatMap(([key, { proof }]) => (proof === undefined ? [] : [[annotationOf([item ?? key]), proof]])),
    ) as { [name: string]: string };
    return { annotations, ...nest(place.path, form.isMap && item === undefined ? values : values[""]) };
  }
  const encode = (text: string) => (kind === "secret" ? Buffer.from(text).toString("base64") : text);
  const data = entries.flatMap(([key, { value, proof }]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [
      [encodeKey(key), encode(text)],
      ...(proof === undefined ? [] : [[encodeKey(key, PROOF_KEY), encode(proof)]]),
    ];
  });
  return { data: Object.fromEntries(data) } as object;
}

function decodeStates(object: KubernetesObject, { state, form, item }: Place): readonly StoredState[] {
  const { annotations } = object.metadata;
  if (state.kind === "resource") {
    const isMap = form.isMap && item === undefined;
    return valuesAt(object, state.path, isMap).map(([key, value]) => {
      const name = annotationOf([item ?? key]);
      const at = { state: [...state.path, ...(isMap ? [key] : [])].join("."), proof: `annotation ${name}` };
      return { key: item ?? key, value, proof: annotations?.[name], at };
    });
  }
  const decode = (text: string) => (state.kind === "secret" ? Buffer.from(text, "base64").toString() : text);
  const { data = {} } = object as { data?: { readonly [key: string]: string } };
  return Object.entries(data).flatMap(([encoded, value]) => {
    const key = decodeKey(encoded);
    if (key === undefined) return [];
    const text = decode(value);
    const proofKey = encodeKey(key, PROOF_KEY);
    const proof = data[proofKey];
    return {
      key: item ?? key,
      value: (form.isObject ? objectIn(text) : undefined) ?? text,
      proof: proof === undefined ? undefined : decode(proof),
      at: { state: `data.${encoded}`, proof: `data.${proofKey}` },
    };
  });
}

// A ConfigMap key may contain letters, digits, hyphens, underscores and dots (Kubernetes 1.36, IsConfigMapKey). An underscore escapes all other
// characters.
function encodeKey(key: string, prefix?: typeof PROOF_KEY): string {
  if (key === "") return prefix ?? "id";
  const encoded = key.replace(/[^A-Za-z0-9.-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${byte.toString(16).padStart(2, "0")}`).join(""),
  );
  // The prefix is needed because an item may have the key "id", or one that consists only of dots.
  return `${prefix ?? "item"}.${encoded}`;
}

// Returns undefined if it is not the key of a state.
function decodeKey(encoded: string): string | undefined {
  if (encoded === "id") return "";
  if (!encoded.startsWith("item.")) return undefined;
  try {
    return decodeURIComponent(encoded.slice("item.".length).replace(/_([0-9a-f]{2})/g, "%$1"));
  } catch {
    return undefined;
  }
}
