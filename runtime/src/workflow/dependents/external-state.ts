// Where the ids of external resources are kept that nothing but the runtime knows (JOSDK DependentResourceWithExplicitState).
import { isDeepStrictEqual } from "node:util";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceWrite } from "../../write/kind-operations.js";
import type { KeptState } from "../definition/workflow-definition.js";
import type { Standing, StateProofs } from "./state-proofs.js";

/** What is kept of the resources of one dependent, by the keys of items; the key is empty unless the dependent is a bulk one. */
export type States = ReadonlyMap<string, KeptState>;

/** Nothing is kept. */
export const NO_STATES: States = new Map<string, KeptState>();

/** A state as it is stored, with its proof. */
export interface Stored {
  readonly value: unknown;
  readonly proof: string | undefined;
}

/** A state that was found where states are kept. */
export interface Kept extends Stored {
  readonly state: KeptState;
  readonly standing: Standing;
  /** Where it was found, for messages: `data.id of ConfigMap "home/one-account-1f-state"`. */
  readonly place: string;
  /** Where its proof belongs, for messages. */
  readonly proofPlace: string;
}

/** What is kept, proven or not, by the keys of items. */
export type KeptStates = ReadonlyMap<string, Kept>;

/** Keeps the ids of the resources of one dependent, or what `stateOf` says of them. */
export interface ExternalStateStore {
  /** Returns what is kept of a primary, as it was written last; what is not proven is for reports alone. */
  read(primary: KubernetesObject): KeptStates;
  /** Keeps a state under a key, with its proof; `undefined` forgets it. */
  set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void>;
  /** Signs all states of a primary that are not proven; returns how many these were. */
  adopt(primary: KubernetesObject): Promise<number>;
  /** Tells whether states of a primary are where an earlier version kept them, and have to be kept anew. Default: they are not */
  isMoving?(primary: KubernetesObject): boolean;
  /** Whether each item has an object of its own, which is looked up by itself. */
  readonly isPerItem?: boolean;
  /** Reads by name what the watch does not show of a primary, so that `read` has it. Default: all is shown */
  lookUp?(primary: KubernetesObject, key: string, options?: LookUpOptions): Promise<void>;
}

/** How states are looked up. */
export interface LookUpOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether an object of somebody else may stand where the states would be kept, as nothing will be kept there. Default: an error */
  readonly isCleanup?: boolean;
}

/** How states look where they are kept. */
export interface StateForm {
  /** Whether the states are those of items, by their keys. */
  readonly isMap: boolean;
  /** Whether a state is an object (`stateOf`), or an id. */
  readonly isObject: boolean;
}

/** Returns states after one of them is set; `undefined` removes it. */
export function withState(states: States, key: string, state: KeptState | undefined): States {
  const others = [...states].filter(([other]) => other !== key);
  return new Map(state === undefined ? others : [...others, [key, state]]);
}

/** Returns the id in a state. */
export function idIn(state: KeptState): string {
  return typeof state === "string" ? state : state.id;
}

/** Reads a state in the form that is kept now, also if an earlier version of the operator wrote the other; undefined if it is neither. */
export function readState(value: unknown, isObject: boolean): KeptState | undefined {
  const id = typeof value === "string" ? value : (value as { id?: unknown } | null | undefined)?.id;
  if (typeof id !== "string") return undefined;
  if (!isObject) return id;
  return typeof value === "string" ? { id } : (value as KeptState);
}

/** Returns the values at a path of an object by the keys of their items. */
export function valuesAt(object: unknown, path: readonly string[], isMap: boolean): readonly [string, unknown][] {
  const found = path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], object);
  return isMap ? Object.entries(found ?? {}) : [["", found]];
}

/** Returns an object with a value at a path. */
export function nest(path: readonly string[], value: unknown): object {
  return path.reduceRight((inner, name) => ({ [name]: inner }), value) as object;
}

interface StatusStateOptions {
  readonly path: readonly string[];
  readonly form: StateForm;
  readonly proofs: StateProofs;
  /** Returns the primary as it was written last. */
  latest(primary: KubernetesObject): KubernetesObject;
  mergePatchStatus(primary: KubernetesObject, status: object): Promise<ResourceWrite>;
  mergePatchAnnotations(
    primary: KubernetesObject,
    annotations: { readonly [name: string]: string | null },
  ): Promise<ResourceWrite>;
}

/**
 * Keeps states in the status of the primaries: a single one as it is, those of items as an object by their keys. Each has its proof in an
 * annotation of its own, so that the writes of items do not meet.
 */
export function createStatusState(options: StatusStateOptions): ExternalStateStore {
  const { path, form, proofs, latest, mergePatchStatus, mergePatchAnnotations } = options;
  // A state is judged once for each version of its primary.
  const judged = new WeakMap<KubernetesObject, KeptStates>();
  const read = (primary: KubernetesObject): KeptStates => {
    const object = latest(primary);
    const known = judged.get(object);
    if (known !== undefined) return known;
    const kept = new Map<string, Kept>();
    for (const [key, value] of valuesAt(object, ["status", ...path], form.isMap)) {
      const state = readState(value, form.isObject);
      if (state === undefined) continue;
      const names = proofs.annotationsOn(key);
      const all = names.flatMap((name) => object.metadata.annotations?.[name] ?? []);
      const proof = all.length === 0 ? undefined : all.join(" ");
      const found = proofs.judge(object, key, value, proof);
      // It is written where it belongs before the former names are forgotten.
      const standing = found === "current" && object.metadata.annotations?.[names[0]] === undefined ? "former" : found;
      const place = `status.${[...path, ...(form.isMap ? [key] : [])].join(".")} of the primary`;
      kept.set(key, { state, value, proof, standing, place, proofPlace: `annotation ${names[0]}` });
    }
    judged.set(object, kept);
    return kept;
  };
  // Former annotations go with the first write.
  const annotationsOf = (key: string, proof: string | null) => {
    const [name, ...former] = proofs.annotationsOn(key);
    return { [name]: proof, ...Object.fromEntries(former.map((each) => [each, null])) };
  };
  const annotate = async (primary: KubernetesObject, stated: { readonly [name: string]: string | null }) => {
    const { annotations = {} } = latest(primary).metadata;
    const changes = Object.entries(stated).filter(([name, value]) => (annotations[name] ?? null) !== value);
    if (changes.length > 0) await mergePatchAnnotations(primary, Object.fromEntries(changes));
  };
  return {
    read,
    async set(primary, key, state) {
      const before = read(primary).get(key);
      const patch = (value: KeptState | null) =>
        mergePatchStatus(primary, nest(path, form.isMap ? { [key]: value } : value));
      if (state === undefined) {
        if (before === undefined) return;
        await patch(null);
        if (primary.metadata.deletionTimestamp === undefined) await annotate(primary, annotationsOf(key, null));
        return;
      }
      // The proof comes first, and beside it stays that of the state before: whichever of them is in the status when the operator ends here is proven.
      const isReplaced =
        before !== undefined && before.standing !== "unproven" && !isDeepStrictEqual(before.value, state);
      const all = [proofs.sign(primary, key, state), ...(isReplaced ? [proofs.sign(primary, key, before.value)] : [])];
      await annotate(primary, annotationsOf(key, all.join(" ")));
      if (isDeepStrictEqual(before?.value, state)) return;
      // A merge patch would leave what only the state before has.
      if (typeof before?.value === "object") await patch(null);
      await patch(state);
    },
    async adopt(primary) {
      const unproven = [...read(primary)].filter(([, { standing }]) => standing === "unproven");
      const signed = unproven.map(([key, { value }]) => annotationsOf(key, proofs.sign(primary, key, value)));
      await annotate(primary, Object.assign({}, ...signed) as { [name: string]: string | null });
      return unproven.length;
    },
  };
}

/** What is remembered of one primary. */
class Memory {
  readonly known = new Map<string, KeptState>();
  /** What was kept, and proven, when it was looked at last: only what differs from it is a change. */
  readonly seen = new Map<string, Kept>();
  /** What is kept, is not proven, and stands for nothing that is known. */
  readonly unproven = new Map<string, Kept>();
  /** What was reported and is still kept, with the keys of the items. */
  reported: ReadonlySet<string> = new Set<string>();
  /** How many writes of a key are under way: until they end, what is kept there is older than what is known. */
  readonly writes = new Map<string, number>();
  /** The keys of resources that were to be deleted, and whose states are not forgotten yet. */
  readonly ending = new Set<string>();
  /** The look-ups that were made, or are being made, by the keys of items, where each has an object of its own. */
  readonly lookUps = new Map<string, Promise<void>>();
  /** Whether states may still be where an earlier version kept them. */
  isMoving = true;
  /** Whether a state became known after the first look that the operator did not keep itself just now. */
  news: "unread" | "none" | "some" = "unread";
}

/** Told of a state that is kept and not proven; `isKnown` says that the operator goes on with one that it kept itself. */
export type UnprovenReport = (
  primary: KubernetesObject,
  kept: Kept,
  item: { readonly key: string; readonly isKnown: boolean },
) => void;

/**
 * Remembers states while they are written, that could not be written, or whose object somebody deleted. A change of what is kept counts if it
 * is proven; one that is not proven is reported once, and never used.
 */
export class RememberedState {
  readonly #kept: ExternalStateStore;
  readonly #onUnproven: UnprovenReport;
  /** By name and uid: a primary that is created again has another uid, while a reconcile of the one before may still be under way. */
  readonly #memories = new Map<ObjectKey, Map<string, Memory>>();

  constructor(kept: ExternalStateStore, onUnproven: UnprovenReport = () => {}) {
    this.#kept = kept;
    this.#onUnproven = onUnproven;
  }

  read(primary: KubernetesObject): States {
    return new Map(this.#refresh(primary).known);
  }

  /** Returns what was kept under a key, or any key, when states were read last, and cannot be used: it is not proven, and nothing else is known. */
  unprovenOf(primary: KubernetesObject, key?: string): Kept | undefined {
    const { unproven } = this.#memoryOf(primary);
    return key === undefined ? [...unproven.values()][0] : unproven.get(key);
  }

  /** Tells whether an id was kept under a key, with its proof, when states were read last, and is not only known. */
  isKept(primary: KubernetesObject, key: string, id: string): boolean {
    const memory = this.#memoryOf(primary);
    const kept = memory.seen.get(key);
    memory.isMoving &&= this.#kept.isMoving?.(primary) === true;
    return kept !== undefined && idIn(kept.state) === id && kept.standing === "current" && !memory.isMoving;
  }

  /** Looks by name for what is kept under a key, once, if nothing is known under it; tells whether something is known then. */
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

  /** Tells whether states became known since this was asked last, so that what was fetched without them is out of date. */
  takeNews(primary: KubernetesObject): boolean {
    const memory = this.#refresh(primary);
    const hasNews = memory.news === "some";
    memory.news = "none";
    return hasNews;
  }

  /** Signs what is not proven of a primary; returns how many states these were. */
  adopt(primary: KubernetesObject): Promise<number> {
    return this.#kept.adopt(primary);
  }

  /** Takes note that a resource is to be deleted: when it is gone, its state has to be forgotten, also where the deletion seems to fail. */
  beginEnd(primary: KubernetesObject, key: string): void {
    this.#memoryOf(primary).ending.add(key);
  }

  /** Returns the keys of resources that were to be deleted, and whose states are not forgotten yet. */
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
        // What is known is kept again.
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
      // What somebody took away is still there outside.
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
