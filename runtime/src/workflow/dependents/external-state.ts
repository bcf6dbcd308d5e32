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
}

/** How states look where they are kept. */
export interface StateForm {
  /** Whether the states of all items are together, by their keys. */
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
export function readState(value: unknown, { isObject }: Pick<StateForm, "isObject">): KeptState | undefined {
  const id = typeof value === "string" ? value : (value as { id?: unknown } | null | undefined)?.id;
  if (typeof id !== "string") return undefined;
  if (!isObject) return id;
  return typeof value === "string" ? { id } : (value as KeptState);
}

/** Reads states at a path of an object. */
export function readStatesAt(object: unknown, path: readonly string[], form: StateForm): States {
  const found = path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], object);
  const all = form.isMap ? Object.entries(found ?? {}) : [["", found] as const];
  return new Map(
    all.flatMap(([key, value]) => {
      const state = readState(value, form);
      return state === undefined ? [] : [[key, state] as const];
    }),
  );
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

/** Remembers states that could not be written, or whose object somebody deleted. A state that somebody changes there counts. */
export class RememberedState implements ExternalStateStore {
  readonly #kept: ExternalStateStore;
  /** What is known of each primary; a primary that is created again under its name has another uid. */
  readonly #known = new Map<ObjectKey, { readonly uid: string | undefined; readonly states: States }>();

  constructor(kept: ExternalStateStore) {
    this.#kept = kept;
  }

  read(primary: KubernetesObject): States {
    const { metadata } = primary;
    const kept = this.#kept.read(primary);
    const remembered = this.#known.get(keyOf(metadata));
    const known = remembered?.uid === metadata.uid ? (remembered?.states ?? NO_STATES) : NO_STATES;
    const isNews = [...kept].some(([key, state]) => !isDeepStrictEqual(known.get(key), state));
    return isNews ? this.#remember(primary, new Map([...known, ...kept])) : known;
  }

  /** Tells whether an id is kept under a key, and not only known. */
  isKept(primary: KubernetesObject, key: string, id: string): boolean {
    const kept = this.#kept.read(primary).get(key);
    return kept !== undefined && idIn(kept) === id;
  }

  async set(primary: KubernetesObject, key: string, state: KeptState | undefined): Promise<void> {
    if (state !== undefined) this.#remember(primary, withState(this.read(primary), key, state));
    await this.#kept.set(primary, key, state);
    if (state === undefined) this.#remember(primary, withState(this.read(primary), key, state));
  }

  forget(primary: ObjectKey): void {
    this.#known.delete(primary);
  }

  #remember({ metadata }: KubernetesObject, states: States): States {
    if (states.size === 0) this.#known.delete(keyOf(metadata));
    else this.#known.set(keyOf(metadata), { uid: metadata.uid, states });
    return states;
  }
}
