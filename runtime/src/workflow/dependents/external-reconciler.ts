import { isDeepStrictEqual } from "node:util";
import { findError, TerminalError } from "../../base/errors.js";
import { keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import type { ExternalDependentSource } from "../../sources/external/external-watch.js";
import { argumentsOf, type DependentReconciler, type DependentRun, type FindRun } from "./dependent-reconciler.js";
import type { KnownItems, Live, Wanted, WriteOutcome } from "./dependent-reconciler.js";
import { idIn, type Kept, type RememberedState } from "./external-state.js";
import type { ExternalDependent, KeptState } from "../definition/workflow-definition.js";

interface ExternalReconcilerOptions {
  readonly definition: ExternalDependent;
  readonly source: ExternalDependentSource;
  /** Keeps the ids of created resources; absent if the dependent has no state. */
  readonly state?:
    Pick<RememberedState, "read" | "isKept" | "unprovenOf" | "lookUp" | "beginEnd" | "endingOf" | "set"> | undefined;
}

/** A resource with the key of its item, which is empty unless the dependent is a bulk one. */
interface ExternalLive extends Live {
  readonly key: string;
}

// The key under which the id of the only resource of a dependent is kept.
const SINGLE = "";

/** Finds, writes and removes the resources of one dependent outside Kubernetes, by functions of the user. */
export class ExternalReconciler implements DependentReconciler {
  readonly capabilities: DependentReconciler["capabilities"];
  readonly source: ExternalDependentSource;
  readonly #options: ExternalReconcilerOptions;
  readonly #definition: ExternalDependent;

  constructor(options: ExternalReconcilerOptions) {
    const { create, update, delete: remove } = options.definition;
    this.capabilities = { write: create !== undefined || update !== undefined, remove: remove !== undefined };
    this.source = options.source;
    this.#options = options;
    this.#definition = options.definition;
  }

  complete(_run: DependentRun, desired: unknown, item?: string): Wanted {
    if (typeof desired !== "object" || desired === null)
      throw new TerminalError(`desired() returned ${String(desired)}; it has to return what the resource should be`);
    if (this.#options.state !== undefined) return { id: item ?? SINGLE, object: desired };
    const id = this.#idOf(desired);
    if (item === undefined || id === item) return { id, object: desired };
    throw new TerminalError(
      `the item "${item}" has the id "${id}"; its key has to be its id, unless the dependent keeps the ids (state)`,
    );
  }

  find(run: FindRun, wanted?: Wanted, items?: KnownItems): ExternalLive | undefined {
    // The id of an item is its key.
    if (this.#definition.bulk !== undefined)
      return wanted && ((items ?? this.findItems(run)).get(wanted.id) as ExternalLive | undefined);
    const found = this.#candidatesFor(run.primary, wanted);
    if (found.length <= 1) return found[0] === undefined ? undefined : { object: found[0], key: SINGLE };
    const ids = found.map((each) => `"${this.#idOf(each)}"`).join(", ");
    throw new Error(
      `${found.length} resources belong to its primary (${ids}), and dependent "${this.#definition.name}" is one; say which (isOwn), ` +
        "give it an event source of its own that knows one of them, let the runtime keep its id (state), or make it a bulk dependent",
    );
  }

  findItems({ primary }: FindRun): ReadonlyMap<string, ExternalLive> {
    const { state, source } = this.#options;
    const keys = new Map([...(state?.read(primary) ?? [])].map(([key, kept]) => [idIn(kept), key]));
    const items = new Map<string, ExternalLive>();
    for (const object of this.#ownOf(primary)) {
      const id = this.#idOf(object);
      // A resource of a shared source whose id is not kept may belong to another dependent.
      if (state !== undefined && source.isShared && !keys.has(id)) continue;
      const key = keys.get(id) ?? id;
      items.set(key, { object, key });
    }
    return items;
  }

  async write(run: DependentRun, wanted: Wanted, found: Live | undefined): Promise<WriteOutcome> {
    const { state, source } = this.#options;
    this.#requireProof(run.primary, this.#keyOf(wanted));
    // A creation that failed may have had an effect, which is fetched then.
    if (found === undefined) await source.load?.(run.primary, run.context.signal);
    const key = this.#keyOf(wanted);
    let live = found ?? this.find(run, wanted);
    if (live === undefined && (await state?.lookUp(run.primary, key, { signal: run.context.signal })) === true) {
      source.invalidate(keyOf(run.primary.metadata));
      await source.load?.(run.primary, run.context.signal);
      live = this.find(run, wanted);
    }
    if (live === undefined) return this.#create(run, wanted);
    const { object } = live;
    const id = this.#idOf(object);
    // A state that could not be kept when its resource was created is kept now, and so is one that somebody took away.
    if (state?.isKept(run.primary, key, id) === false) {
      const known = state.read(run.primary).get(key);
      await state.set(run.primary, key, known !== undefined && idIn(known) === id ? known : this.#stateOf(object));
    }
    const { update, matches = isDeepStrictEqual } = this.#definition;
    if (update === undefined || matches(wanted.object, object)) return "unchanged";
    const updated = await this.#attempt(run, key, (args) => update(wanted.object, object, args));
    source.recordUpdated(keyOf(run.primary.metadata), checkReturned("update", updated), object);
    return "updated";
  }

  async remove(run: DependentRun, live: Live): Promise<void> {
    const { object, key } = live as ExternalLive;
    this.#options.state?.beginEnd(run.primary, key);
    await this.#attempt(run, key, (args) => this.#definition.delete?.(object, args));
    this.source.recordDeleted(keyOf(run.primary.metadata), object);
    // Only now: by its id the resource is found again if the deletion is interrupted.
    await this.#options.state?.set(run.primary, key, undefined);
  }

  // The state of a resource that is gone leads nowhere. While the primary is being deleted, it goes with the primary.
  async finishRemovals({ primary, context }: Pick<DependentRun, "primary" | "context">): Promise<void> {
    const { state } = this.#options;
    if (context.signal.aborted) return;
    const unproven = state?.unprovenOf(primary);
    // Its resource may be one of the primary, so there is something left.
    if (unproven !== undefined && !this.#releases(primary)) throw unprovenError(unproven);
    if (primary.metadata.deletionTimestamp !== undefined) return;
    for (const key of state?.endingOf(primary) ?? []) {
      const isSingle = this.#definition.bulk === undefined;
      const isBack = isSingle ? this.#candidatesFor(primary).length > 0 : this.findItems({ primary }).has(key);
      if (!isBack) await state?.set(primary, key, undefined);
    }
  }

  release({ primary, context }: DependentRun, { error, item }: { error: unknown; item?: string | undefined }): boolean {
    const { name, onDeleteFailure } = this.#definition;
    // An error that says when to try again is no end.
    const isOver =
      primary.metadata.deletionTimestamp !== undefined && findError(error, "RetryAfterError") === undefined;
    if (!isOver) return false;
    const isLeft = onDeleteFailure === "release";
    const dependent = item === undefined ? `"${name}"` : `"${name}", item "${item}"`;
    const what = isLeft ? "is left" : "blocks the deletion of its primary";
    const note = `the resource of dependent ${dependent} could not be deleted and ${what}: ${messageOf(error)}`;
    // Where it blocks, the reconcile fails, and that is logged.
    if (isLeft) context.logger.warn({ dependent: name, item, error }, note);
    context.events.record({ type: "Warning", reason: "DeletionFailed", action: "Delete", note });
    return isLeft;
  }

  async #create(run: DependentRun, wanted: Wanted): Promise<WriteOutcome> {
    const { create, isOwn } = this.#definition;
    if (create === undefined) return "absent";
    const { state } = this.#options;
    const { primary, context } = run;
    const key = this.#keyOf(wanted);
    this.#requireProof(primary, key);
    const created = checkReturned("create", await this.#attempt(run, key, (args) => create(wanted.object, args)));
    const id = this.#idOf(created);
    let kept: KeptState = this.#definition.stateOf === undefined ? id : { id };
    let problem: unknown;
    try {
      kept = this.#stateOf(created);
    } catch (error) {
      // With its id alone the resource is found again, and not created twice.
      problem = error;
    }
    // A later attempt may have created the resource as well after this one ran out of time; its id is kept by now.
    const isReplaced = context.signal.aborted && state?.read(primary).has(key) === true;
    const keeping = isReplaced ? undefined : state?.set(primary, key, kept);
    // The id is known already: a poll that finds the resource while the id is being written tells nothing new.
    this.source.recordCreated(keyOf(primary.metadata), created);
    await keeping;
    if (problem !== undefined) throw problem;
    if (isOwn?.(created, primary) === false)
      throw new TerminalError(
        `create() returned a resource (id "${id}") that isOwn says is of another dependent, so that it will not be found again`,
      );
    if (state === undefined && wanted.id !== "" && wanted.id !== id)
      throw new TerminalError(
        `create() returned a resource with the id "${id}" for one with the id "${wanted.id}", which will not be found again; make idOf return ` +
          "what both have, or let the runtime keep the id (state)",
      );
    return "created";
  }

  // A change that fails, or runs out of time while it is in flight, may have an effect all the same.
  async #attempt<Result>(
    run: DependentRun,
    key: string,
    change: (args: object) => Result | Promise<Result>,
  ): Promise<Result> {
    const { primary } = run;
    const { signal } = run.context;
    const state = this.#options.state?.read(primary).get(key);
    const invalidate = () => this.source.invalidate(keyOf(primary.metadata));
    signal.addEventListener("abort", invalidate, { once: true });
    try {
      return await change({ ...argumentsOf(run), state });
    } catch (error) {
      invalidate();
      throw error;
    } finally {
      signal.removeEventListener("abort", invalidate);
    }
  }

  #candidatesFor(primary: KubernetesObject, wanted?: Wanted): readonly object[] {
    const { state } = this.#options;
    const all = this.#ownOf(primary);
    if (state === undefined) {
      // An id that the service gives is not known before; then any resource is meant.
      const isKnown = wanted !== undefined && wanted.id !== "";
      return isKnown ? all.filter((each) => this.#idOf(each) === wanted.id) : all;
    }
    const kept = state.read(primary).get(SINGLE);
    this.#requireProof(primary, SINGLE);
    const own = kept === undefined ? [] : all.filter((each) => this.#idOf(each) === idIn(kept));
    // A resource that was created, but whose id could not be kept, is found by its source if that knows nothing else.
    return own.length > 0 || this.source.isShared ? own : all;
  }

  /** Throws if a state is kept that nothing proves: its resource may be another one's, or the one that must not be created twice. */
  #requireProof(primary: KubernetesObject, key: string): void {
    const unproven = this.#options.state?.unprovenOf(primary, key);
    if (unproven !== undefined) throw unprovenError(unproven);
  }

  #releases({ metadata }: KubernetesObject): boolean {
    return metadata.deletionTimestamp !== undefined && this.#definition.onDeleteFailure === "release";
  }

  #ownOf(primary: KubernetesObject): readonly object[] {
    const all = this.source.secondariesOf(primary) as readonly object[];
    const { isOwn } = this.#definition;
    return isOwn === undefined ? all : all.filter((each) => isOwn(each, primary));
  }

  #keyOf({ id }: Wanted): string {
    return this.#definition.bulk === undefined ? SINGLE : id;
  }

  /** Returns what is to be kept of a resource; throws a TerminalError if it would not lead back to the resource. */
  #stateOf(resource: object): KeptState {
    const id = this.#idOf(resource);
    const { stateOf } = this.#definition;
    if (stateOf === undefined) return id;
    const state: unknown = stateOf(resource);
    if (typeof state !== "object" || state === null)
      throw new TerminalError(
        `stateOf() returned ${state === null ? "null" : `a ${typeof state}`}; it has to return an object with the id of the resource as "id", or leave it out to ` +
          "keep the id alone",
      );
    if ((state as { id?: unknown }).id === id) return state as KeptState;
    throw new TerminalError(
      `stateOf() returned a state with the id "${String((state as { id?: unknown }).id)}" for a resource whose id is "${id}" (idOf); its "id" has to be that`,
    );
  }

  #idOf(resource: unknown): string {
    const id: unknown = this.#definition.idOf?.(resource) ?? "";
    if (typeof id === "string") return id;
    // A kept id is a text: the resource would be taken for one that nobody wants, deleted, and created again.
    throw new TerminalError(`idOf() returned a ${typeof id} (${String(id)}); it has to return a text`);
  }
}

function unprovenError({ place, proofPlace }: Kept): Error {
  return new Error(
    `the id at ${place} was not written by this operator, as its proof (${proofPlace}) is missing or wrong; remove the id if its resource does not ` +
      "belong to this primary, or is gone. The log of the operator has the command to accept it",
  );
}

function checkReturned(by: "create" | "update", resource: unknown): object {
  if (typeof resource === "object" && resource !== null) return resource;
  throw new TerminalError(`${by}() returned ${String(resource)}; it has to return the resource as it is now`);
}
