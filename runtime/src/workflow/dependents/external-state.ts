// Where the ids of external resources are kept that nothing but the runtime knows (JOSDK DependentResourceWithExplicitState).
import { isDeepStrictEqual } from "node:util";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceWrite } from "../../write/kind-operations.js";
import type { KeptState } from "../definition/workflow-definition.js";

/** What is kept of the resources of one dependent, by the keys of items; the key is empty unless the dependent is a bulk one. */
export type States = ReadonlyMap<string, KeptState>;

/** Nothing is kept. */
export const NO_STATES: States = new Map<string, KeptState>();

/** Keeps the ids of the resources of one dependent, or what `stateOf` says of them. */
export interface ExternalStateStore {
  /** Returns what is kept of a primary, as it was written last. */
  read(primary: KubernetesObject): States;
  /** Keeps a state under a key; `undefined` forgets it. */
  set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void>;
  /** Tells whether states of a primary are where an earlier version kept them, and have to be kept anew. Default: they are not */
  isMoving?(primary: KubernetesObject): boolean;
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
function readState(value: unknown, isObject: boolean): KeptState | undefined {
  const id = typeof value === "string" ? value : (value as { id?: unknown } | null | undefined)?.id;
  if (typeof id !== "string") return undefined;
  if (!isObject) return id;
  return typeof value === "string" ? { id } : (value as KeptState);
}

/** Reads states by their keys; what has no key, or is no state, is somebody else's. */
export function readStates(entries: Iterable<readonly [string | undefined, unknown]>, isObject: boolean): States {
  const states = new Map<string, KeptState>();
  for (const [key, value] of entries) if (key !== undefined) put(states, key, readState(value, isObject));
  return states;
}

/** Reads states at a path of an object. */
export function readStatesAt(object: unknown, path: readonly string[], form: StateForm): States {
  const found = path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], object);
  return readStates(form.isMap ? Object.entries(found ?? {}) : [["", found]], form.isObject);
}

/** Returns an object with a value at a path. */
export function nest(path: readonly string[], value: unknown): object {
  return path.reduceRight((inner, name) => ({ [name]: inner }), value) as object;
}

interface StatusStateOptions {
  readonly path: readonly string[];
  readonly form: StateForm;
  /** Returns the primary as it was written last. */
  latest(primary: KubernetesObject): KubernetesObject;
  mergePatchStatus(primary: KubernetesObject, status: object): Promise<ResourceWrite>;
}

/** Keeps states in the status of the primaries: a single one as it is, those of items as an object by their keys. */
export function createStatusState({ path, form, latest, mergePatchStatus }: StatusStateOptions): ExternalStateStore {
  const read = (primary: KubernetesObject) => readStatesAt(latest(primary), ["status", ...path], form);
  return {
    read,
    async set(primary, key, state) {
      const before = read(primary).get(key);
      const patch = (value: KeptState | null) =>
        mergePatchStatus(primary, nest(path, form.isMap ? { [key]: value } : value));
      // A merge patch would leave what only the state before has.
      if (typeof before === "object" && state !== undefined) await patch(null);
      if (before !== undefined || state !== undefined) await patch(state ?? null);
    },
  };
}

/** What is remembered of one primary. */
class Memory {
  readonly known = new Map<string, KeptState>();
  /** What was kept when it was looked at last: only what differs from it is somebody's change. */
  readonly seen = new Map<string, KeptState>();
  /** How many writes of a key are under way: until they end, what is kept there is older than what is known. */
  readonly writes = new Map<string, number>();
  /** The keys of resources that were to be deleted, and whose states are not forgotten yet. */
  readonly ending = new Set<string>();
  /** Whether states may still be where an earlier version kept them. */
  isMoving = true;
}

/** Remembers states while they are written, that could not be written, or whose object somebody deleted. A state that somebody changes there counts. */
export class RememberedState implements ExternalStateStore {
  readonly #kept: ExternalStateStore;
  /** By name and uid: a primary that is created again has another uid, while a reconcile of the one before may still be under way. */
  readonly #memories = new Map<ObjectKey, Map<string, Memory>>();

  constructor(kept: ExternalStateStore) {
    this.#kept = kept;
  }

  read(primary: KubernetesObject): States {
    const { known, seen, writes } = this.#memoryOf(primary);
    const kept = this.#kept.read(primary);
    for (const key of new Set([...seen.keys(), ...kept.keys()])) {
      const state = kept.get(key);
      if (writes.has(key) || isDeepStrictEqual(state, seen.get(key))) continue;
      put(seen, key, state);
      // What somebody took away is still there outside.
      if (state !== undefined) known.set(key, state);
    }
    return new Map(known);
  }

  /** Tells whether an id was kept under a key when states were read last, and is not only known. */
  isKept(primary: KubernetesObject, key: string, id: string): boolean {
    const memory = this.#memoryOf(primary);
    const kept = memory.seen.get(key);
    memory.isMoving &&= this.#kept.isMoving?.(primary) === true;
    return kept !== undefined && idIn(kept) === id && !memory.isMoving;
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
      put(seen, key, this.#kept.read(primary).get(key));
    }
  }

  forget(primary: ObjectKey): void {
    this.#memories.delete(primary);
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
