// Stores the ids of external resources (DependentResourceWithExplicitState in JOSDK).
//
// Users who can write ConfigMaps, Secrets or the status of a primary could insert an id. So each stored state has a proof that only the operator can
// create. Without a valid proof, the operator does not fetch, update or delete the resource.
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { ResourceWrite } from "../apply/resource-operations.js";
import {
  type KubernetesObject,
  type ObjectKey,
  describeObject,
  isTerminating,
  keyOf,
  objectIn,
} from "../base/kubernetes-object.js";
import type { ProofKey } from "../base/proof-key.js";
import type { KeptState } from "../workflow/workflow-definition.js";

/** The states of the resources of one dependent, by key of the item. The key is empty unless the dependent is a bulk dependent. */
type States = ReadonlyMap<string, KeptState>;

export const NO_STATES: States = new Map<string, KeptState>();

/** A state in its stored form, with its proof. */
export interface Stored {
  readonly value: unknown;
  readonly proof: string | undefined;
}

export interface Kept extends Stored {
  readonly state: KeptState;
  readonly standing: Standing;
  /** The location of the state, for messages: `data.id of ConfigMap "home/one-account-1f-state"`. */
  readonly place: string;
  /** The location of the proof, for messages. */
  readonly proofPlace: string;
}

/** Proven and unproven states, by key of the item. */
export type KeptStates = ReadonlyMap<string, Kept>;

/** Stores the ids of the resources of one dependent, or the results of `stateOf`. */
export interface ExternalStateStore {
  /** Returns the last written states of a primary. Unproven ones are only for reports. */
  read(primary: KubernetesObject): KeptStates;
  /** Writes a state with its proof. `undefined` deletes it. */
  set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void>;
  /** Signs all unproven states of a primary. Returns their number. */
  adopt(primary: KubernetesObject): Promise<number>;
  /** Returns whether states of a primary are stored where an earlier version stored them and have to be moved. Default: false */
  isMoving?(primary: KubernetesObject): boolean;
  /** Whether each item has an object of its own, which is looked up separately. */
  readonly isPerItem?: boolean;
  /** Reads objects by name that the watch does not contain, so that `read` returns their states. Default: there are none */
  lookUp?(primary: KubernetesObject, key: string, options?: LookUpOptions): Promise<void>;
}

export interface LookUpOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether another client's object may have the name, because nothing will be written. Default: such an object is an error */
  readonly isCleanup?: boolean;
}

export interface StateForm {
  /** Whether there is a state for each item, by key. */
  readonly isMap: boolean;
  /** Whether a state is an object (the result of `stateOf`) instead of an id. */
  readonly isObject: boolean;
}

export function idIn(state: KeptState): string {
  return typeof state === "string" ? state : state.id;
}

/**
 * Converts a stored value to the current form; an earlier version of the operator may have written the other form. Returns undefined if it is
 * neither.
 */
export function readState(value: unknown, isObject: boolean): KeptState | undefined {
  const id = typeof value === "string" ? value : (value as { id?: unknown } | null | undefined)?.id;
  if (typeof id !== "string") return undefined;
  if (!isObject) return id;
  return typeof value === "string" ? { id } : (value as KeptState);
}

/** Returns the values at a path of an object, by key of the item. */
export function valuesAt(object: unknown, path: readonly string[], isMap: boolean): readonly [string, unknown][] {
  const found = path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], object);
  return isMap ? Object.entries(found ?? {}) : [["", found]];
}

/** Returns an object that contains a value at a path. */
export function nest(path: readonly string[], value: unknown): object {
  return path.reduceRight((inner, name) => ({ [name]: inner }), value) as object;
}

interface StatusPlace {
  readonly path: readonly string[];
  readonly form: StateForm;
}

interface StatusStateOptions extends StatusPlace {
  readonly proofs: StateProofs;
  /** Returns the last written state of the primary. */
  latest(primary: KubernetesObject): KubernetesObject;
  mergePatchStatus(primary: KubernetesObject, status: object): Promise<ResourceWrite>;
  mergePatchAnnotations(primary: KubernetesObject, annotations: ProofAnnotations): Promise<ResourceWrite>;
}

/** Annotations with proofs, by name. null removes an annotation. */
type ProofAnnotations = { readonly [name: string]: string | null };

/**
 * Stores states in the status of primaries: a single state directly, the states of items as an object by key. Each proof is in a separate annotation,
 * so that writes of different items do not conflict.
 */
export class StatusStateStore implements ExternalStateStore {
  readonly #options: StatusStateOptions;
  /** Caches the verified states for each version of a primary. */
  readonly #judged = new WeakMap<KubernetesObject, KeptStates>();

  constructor(options: StatusStateOptions) {
    this.#options = options;
  }

  read(primary: KubernetesObject): KeptStates {
    const object = this.#options.latest(primary);
    let kept = this.#judged.get(object);
    if (kept === undefined) this.#judged.set(object, (kept = keptInStatus(object, this.#options)));
    return kept;
  }

  async set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void> {
    const { proofs } = this.#options;
    const before = this.read(primary).get(key);
    if (state === undefined) {
      if (before === undefined) return;
      await this.#patch(primary, key, null);
      if (!isTerminating(primary)) await this.#annotate(primary, proofAnnotations(proofs, key, null));
      return;
    }
    // The proof is written first, together with that of the previous state, so that the status has a proven state even if the operator stops at this
    // point.
    const isReplaced =
      before !== undefined && before.standing !== "unproven" && !isDeepStrictEqual(before.value, state);
    const all = [proofs.sign(primary, key, state), ...(isReplaced ? [proofs.sign(primary, key, before.value)] : [])];
    await this.#annotate(primary, proofAnnotations(proofs, key, all.join(" ")));
    if (isDeepStrictEqual(before?.value, state)) return;
    // A merge patch would keep fields that only the previous state has.
    if (typeof before?.value === "object") await this.#patch(primary, key, null);
    await this.#patch(primary, key, state);
  }

  async adopt(primary: KubernetesObject): Promise<number> {
    const { proofs } = this.#options;
    const unproven = [...this.read(primary)].filter(([, { standing }]) => standing === "unproven");
    const signed = unproven.map(([key, { value }]) => proofAnnotations(proofs, key, proofs.sign(primary, key, value)));
    await this.#annotate(primary, Object.assign({}, ...signed) as ProofAnnotations);
    return unproven.length;
  }

  async #patch(primary: KubernetesObject, key: string, value: KeptState | null): Promise<void> {
    const { path, form, mergePatchStatus } = this.#options;
    const { object } = await mergePatchStatus(primary, nest(path, form.isMap ? { [key]: value } : value));
    const stored = valuesAt(object, ["status", ...path], form.isMap).find(([each]) => each === key)?.[1];
    if (value === null || isDeepStrictEqual(stored, value)) return;
    throw new Error(
      `the API server did not store the id of the resource at ${statusPathOf(key, this.#options)} of ${describeObject(object, primary.metadata)}; add the field to the ` +
        "definition in the cluster, otherwise the operator does not find the resource after a restart",
    );
  }

  async #annotate(primary: KubernetesObject, stated: ProofAnnotations): Promise<void> {
    const { latest, mergePatchAnnotations } = this.#options;
    const { annotations = {} } = latest(primary).metadata;
    const changes = Object.entries(stated).filter(([name, value]) => (annotations[name] ?? null) !== value);
    if (changes.length > 0) await mergePatchAnnotations(primary, Object.fromEntries(changes));
  }
}

function keptInStatus(
  primary: KubernetesObject,
  { path, form, proofs }: StatusPlace & { readonly proofs: StateProofs },
): KeptStates {
  const { annotations } = primary.metadata;
  const kept = new Map<string, Kept>();
  for (const [key, value] of valuesAt(primary, ["status", ...path], form.isMap)) {
    const state = readState(value, form.isObject);
    if (state === undefined) continue;
    const names = proofs.annotationsOn(key);
    const all = names.flatMap((name) => annotations?.[name] ?? []);
    const proof = all.length === 0 ? undefined : all.join(" ");
    const found = proofs.judge(primary, key, value, proof);
    // The proof is moved to its current annotation before the former names are dropped.
    const standing = found === "current" && annotations?.[names[0]] === undefined ? "former" : found;
    const place = `${statusPathOf(key, { path, form })} of the primary`;
    kept.set(key, { state, value, proof, standing, place, proofPlace: `annotation ${names[0]}` });
  }
  return kept;
}

/** Returns annotations for a patch that sets a proof and removes the former annotations. */
function proofAnnotations(proofs: StateProofs, key: string, proof: string | null): ProofAnnotations {
  const [name, ...former] = proofs.annotationsOn(key);
  return { [name]: proof, ...Object.fromEntries(former.map((each) => [each, null])) };
}

function statusPathOf(key: string, { path, form }: StatusPlace): string {
  return `status.${[...path, ...(form.isMap ? [key] : [])].join(".")}`;
}

class Memory {
  readonly known = new Map<string, KeptState>();
  /** The proven states of the last read. Only differences from these are changes. */
  readonly seen = new Map<string, Kept>();
  /** Unproven states, by keys for which no state is known. */
  readonly unproven = new Map<string, Kept>();
  /** Unproven states that have been reported and still exist. */
  reported: ReadonlySet<string> = new Set<string>();
  /** The number of writes in flight, by key. Until they end, the stored state is older than the known one. */
  readonly writes = new Map<string, number>();
  /** The keys of resources whose deletion has started and whose states have not been deleted. */
  readonly ending = new Set<string>();
  /** Lookups that are completed or in flight, by item if each has an object of its own. */
  readonly lookUps = new Map<string, Promise<void>>();
  /** Whether states may still be stored where an earlier version stored them. */
  isMoving = true;
  /** Whether a state that this process did not write has appeared since the first read. */
  news: "unread" | "none" | "some" = "unread";
}

/** Called for an unproven state. `isKnown`: the operator continues with the state that it wrote itself. */
export type UnprovenReport = (
  primary: KubernetesObject,
  kept: Kept,
  item: { readonly key: string; readonly isKnown: boolean },
) => void;

/**
 * Remembers states that are being written, that could not be written, or whose object another client deleted. A proven change of the stored state is
 * adopted; an unproven one is reported once and never used.
 */
export class RememberedState {
  readonly #kept: ExternalStateStore;
  readonly #onUnproven: UnprovenReport;
  /** By name and UID: a reconcile of a previous primary with the same name may still be in progress. */
  readonly #memories = new Map<ObjectKey, Map<string, Memory>>();

  constructor(kept: ExternalStateStore, onUnproven: UnprovenReport = () => {}) {
    this.#kept = kept;
    this.#onUnproven = onUnproven;
  }

  read(primary: KubernetesObject): States {
    return new Map(this.#refresh(primary).known);
  }

  /** Returns an unproven state for a key, or for any key, from the last read, if no state is known for it. */
  unprovenOf(primary: KubernetesObject, key?: string): Kept | undefined {
    const { unproven } = this.#memoryOf(primary);
    return key === undefined ? [...unproven.values()][0] : unproven.get(key);
  }

  /** Returns whether the last read contained an id for a key, with a current proof. */
  isKept(primary: KubernetesObject, key: string, id: string): boolean {
    const memory = this.#memoryOf(primary);
    const kept = memory.seen.get(key);
    memory.isMoving &&= this.#kept.isMoving?.(primary) === true;
    return kept !== undefined && idIn(kept.state) === id && kept.standing === "current" && !memory.isMoving;
  }

  /** Looks up the state for a key by name, once, unless one is known. Returns whether it found one. */
  async lookUp(primary: KubernetesObject, key: string, options?: LookUpOptions): Promise<boolean> {
    const memory = this.#memoryOf(primary);
    if (memory.known.has(key) || this.#kept.lookUp === undefined) return false;
    const subject = this.#kept.isPerItem === true ? key : "";
    let lookUp = memory.lookUps.get(subject);
    if (lookUp === undefined) {
      lookUp = this.#kept.lookUp(primary, key, options);
      memory.lookUps.set(subject, lookUp);
      lookUp.catch(() => memory.lookUps.delete(subject));
    }
    await lookUp;
    return this.#refresh(primary).known.has(key);
  }

  /** Returns whether states have appeared since the last call, so that resources which were fetched without them are outdated. */
  takeNews(primary: KubernetesObject): boolean {
    const memory = this.#refresh(primary);
    const hasNews = memory.news === "some";
    memory.news = "none";
    return hasNews;
  }

  adopt(primary: KubernetesObject): Promise<number> {
    return this.#kept.adopt(primary);
  }

  /**
   * Records that the deletion of a resource starts. Its state is deleted when the resource no longer exists, even if the deletion appears to fail.
   */
  beginEnd(primary: KubernetesObject, key: string): void {
    this.#memoryOf(primary).ending.add(key);
  }

  /** Returns the keys of resources whose deletion has started and whose states have not been deleted. */
  endingOf(primary: KubernetesObject): readonly string[] {
    return [...this.#memoryOf(primary).ending];
  }

  async set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void> {
    const { known, seen, writes, ending } = this.#memoryOf(primary);
    writes.set(key, (writes.get(key) ?? 0) + 1);
    if (state !== undefined) {
      ending.delete(key);
      known.set(key, state);
    }
    try {
      await this.#kept.set(primary, key, state);
      if (state === undefined) {
        ending.delete(key);
        known.delete(key);
      }
    } finally {
      const left = writes.get(key)! - 1;
      put(writes, key, left === 0 ? undefined : left);
      const kept = this.#kept.read(primary).get(key);
      put(seen, key, kept?.standing === "unproven" ? undefined : kept);
    }
  }

  forget(primary: ObjectKey): void {
    this.#memories.delete(primary);
  }

  #refresh(primary: KubernetesObject): Memory {
    const memory = this.#memoryOf(primary);
    const { known, seen, unproven, reported, writes } = memory;
    const all = this.#kept.read(primary);
    unproven.clear();
    const reports = new Set<string>();
    for (const key of new Set([...seen.keys(), ...all.keys()])) {
      if (writes.has(key)) continue;
      const kept = all.get(key);
      if (kept?.standing === "unproven") {
        // The known state is written again.
        seen.delete(key);
        const isKnown = known.has(key);
        if (!isKnown) unproven.set(key, kept);
        const report = JSON.stringify([key, kept.value, kept.proof]);
        if (!reported.has(report)) this.#onUnproven(primary, kept, { key, isKnown });
        reports.add(report);
        continue;
      }
      const isNew = !isDeepStrictEqual(kept?.state, seen.get(key)?.state);
      put(seen, key, kept);
      // Another client has removed the state, but the resource still exists.
      if (!isNew || kept === undefined) continue;
      if (memory.news !== "unread") memory.news = "some";
      known.set(key, kept.state);
    }
    if (memory.news === "unread") memory.news = "none";
    memory.reported = reports;
    return memory;
  }

  #memoryOf({ metadata }: KubernetesObject): Memory {
    const { uid = "" } = metadata;
    const ofName = this.#memories.get(keyOf(metadata)) ?? new Map<string, Memory>();
    const memory = ofName.get(uid) ?? new Memory();
    this.#memories.set(keyOf(metadata), ofName.set(uid, memory));
    return memory;
  }
}

function put<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

/** The result of verifying a proof: valid for the current names, valid for former names, or missing or invalid. */
type Standing = "current" | "former" | "unproven";

interface StateProofsOptions {
  /** Returns the key. Throws if it has not been loaded yet. */
  key(): ProofKey;
  /** The name of the controller, followed by its former names. */
  readonly controllers: readonly [string, ...string[]];
  /** The name of the dependent, followed by its former names. */
  readonly dependents: readonly [string, ...string[]];
}

/** Signs the states of one dependent. A proof covers the UID of the primary, the controller, the dependent, the item, and the whole state. */
export class StateProofs {
  readonly #options: StateProofsOptions;
  /** The current names come first. */
  readonly #names: readonly (readonly [controller: string, dependent: string])[];

  constructor(options: StateProofsOptions) {
    this.#options = options;
    this.#names = options.controllers.flatMap((controller) =>
      options.dependents.map((dependent) => [controller, dependent] as const),
    );
  }

  sign(primary: KubernetesObject, item: string, state: unknown): string {
    return this.#options.key().sign(stateFactsOf(this.#names[0]!, primary, item, state));
  }

  /** Verifies a state. `proof` may be a space-separated list, of which one has to be valid. */
  judge(primary: KubernetesObject, item: string, state: unknown, proof: string | undefined): Standing {
    if (proof === undefined) return "unproven";
    const key = this.#options.key();
    const proofs = proof.split(" ");
    const found = this.#names.findIndex((names) => {
      const facts = stateFactsOf(names, primary, item, state);
      return proofs.some((each) => key.proves(each, facts));
    });
    return found === 0 ? "current" : found > 0 ? "former" : "unproven";
  }

  /** Returns the annotations of the primary that may contain the proof of an item, the current one first. */
  annotationsOn(item: string): readonly [string, ...string[]] {
    return this.#names.map((names) => annotationOf([...names, item])) as unknown as [string, ...string[]];
  }
}

/** Returns the annotation name of a proof. It is unique for the facts. */
export function annotationOf(facts: readonly string[]): string {
  const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 16);
  return `gen-operator.dev/proof-${hash}`;
}

/** Serializes a state with sorted keys: the API server may store the keys of an object in another order. */
function textOfState(state: unknown): string {
  if (typeof state !== "string") return JSON.stringify(withSortedMembers(state));
  const object = objectIn(state);
  return object === undefined ? state : JSON.stringify(withSortedMembers(object));
}

function stateFactsOf(
  [controller, dependent]: readonly [controller: string, dependent: string],
  { metadata: { uid } }: KubernetesObject,
  item: string,
  state: unknown,
): readonly (string | undefined)[] {
  return ["external-state", controller, uid, dependent, item, textOfState(state)];
}

function withSortedMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedMembers);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, each]) => [name, withSortedMembers(each)]));
}
