import { isDeepStrictEqual } from "node:util";
import { createHash } from "node:crypto";
import type { PostponedWrite } from "../../base/activity.js";
import { findError, RetryAfterError, TerminalError } from "../../base/errors.js";
import { keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import { userCalls } from "../../base/user-calls.js";
import type { ExternalDependentSource } from "../../sources/external/external-watch.js";
import { argumentsOf, type DependentReconciler, type DependentRun, type FindRun } from "./dependent-reconciler.js";
import type { KnownItems, Live, Wanted, WriteOutcome } from "./dependent-reconciler.js";
import { idIn, type Kept, type RememberedState } from "./external-state.js";
import type { ExternalDependent, KeptState } from "../definition/workflow-definition.js";

/** A resource that is written. */
export interface ExternalWrite {
  /** The item; empty unless the dependent is a bulk one. */
  readonly key: string;
  readonly id: string;
  readonly desired?: object | undefined;
}

/** Tells people of the writes of one dependent, and holds those up that are made over and over. */
export interface ExternalWriteLog {
  postponementOf(run: DependentRun, write: ExternalWrite): PostponedWrite | undefined;
  note(run: DependentRun, verb: "created" | "updated" | "deleted", write: ExternalWrite): void;
  noteMatch(run: DependentRun, key: string): void;
}

/**
 * What a process before this one may have created just before it ended: until the grace is over, a list that lacks it proves nothing.
 */
export interface StartGrace {
  /** Returns how long such a resource may still be missing in what is fetched for a primary; 0 if there can be none. */
  remainingMs(primary: KubernetesObject): number;
  /** Reconciles a primary when that time is over. */
  reconcileAfter(primary: KubernetesObject, ms: number): void;
}

interface ExternalReconcilerOptions {
  readonly definition: ExternalDependent;
  readonly source: ExternalDependentSource;
  /** Keeps the ids of created resources; absent if the dependent has no state. */
  readonly state?:
    Pick<RememberedState, "read" | "isKept" | "unprovenOf" | "lookUp" | "beginEnd" | "endingOf" | "set"> | undefined;
  readonly writes?: ExternalWriteLog | undefined;
  /** Default: there was no process before */
  readonly grace?: StartGrace | undefined;
}

/** A resource with the key of its item, which is empty unless the dependent is a bulk one. */
interface ExternalLive extends Live {
  readonly key: string;
  /** What else belongs to the primary, of a dependent that is one resource; it is deleted with it. */
  readonly others?: readonly object[];
}

// The key under which the id of the only resource of a dependent is kept.
const SINGLE = "";

/** What functions of the user are called with besides desired and live resources. */
type AttemptArguments = ReturnType<typeof argumentsOf> & {
  readonly state: KeptState | undefined;
  readonly token: string;
};

/** After which time a resource that was created otherwise than desired is looked at again. */
const RECONCILE_AGAIN_MS = 1_000;

/** Finds, writes and removes the resources of one dependent outside Kubernetes, by functions of the user. */
export class ExternalReconciler implements DependentReconciler {
  readonly capabilities: DependentReconciler["capabilities"];
  readonly source: ExternalDependentSource;
  readonly #options: ExternalReconcilerOptions;
  readonly #definition: ExternalDependent;
  /** The states of primaries for which the only resource was deleted. */
  readonly #removedFor = new WeakSet<KubernetesObject>();

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
    const [object, ...others] = found;
    if (object === undefined) return undefined;
    // What is to be deleted goes altogether. Functions of the user are not given one of several while the primary lives.
    const isAmbiguous = others.length > 0 && (wanted !== undefined || !("notes" in run || isDeleted(run.primary)));
    if (isAmbiguous) throw this.#ambiguity(found);
    return { object, key: SINGLE, ...(others.length > 0 && { others }) };
  }

  hasAny({ primary }: Pick<FindRun, "primary">): boolean {
    if (!this.capabilities.remove) return false;
    const { state, source } = this.#options;
    if ((state?.read(primary).size ?? 0) > 0 || state?.unprovenOf(primary) !== undefined) return true;
    // Of a shared source without kept ids, a resource may be that of another dependent.
    return !(state !== undefined && source.isShared) && this.#ownOf(primary).length > 0;
  }

  unconfirmedMs(primary: KubernetesObject): number {
    return this.capabilities.remove ? (this.#options.grace?.remainingMs(primary) ?? 0) : 0;
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
    const { update } = this.#definition;
    const { writes } = this.#options;
    let outcome: WriteOutcome = "unchanged";
    if (update === undefined || this.#matches(wanted.object, object, run.primary)) writes?.noteMatch(run, key);
    else {
      const write: ExternalWrite = { key, id, desired: wanted.object };
      const postponed = writes?.postponementOf(run, write);
      if (postponed !== undefined) return { postponed };
      const updated = checkReturned(
        "update",
        await this.#attempt(run, "update", key, (args) => update(wanted.object, object, args)),
      );
      source.recordUpdated(keyOf(run.primary.metadata), updated, object);
      writes?.note(run, "updated", write);
      outcome = "updated";
    }
    this.#checkAlone(run.primary, object);
    return outcome;
  }

  async remove(run: DependentRun, live: Live): Promise<void> {
    const { object, key, others = [] } = live as ExternalLive;
    this.#options.state?.beginEnd(run.primary, key);
    // One that cannot be deleted keeps no other.
    const failures: unknown[] = [];
    for (const each of [object, ...others])
      try {
        await this.#attempt(run, "delete", key, (args) =>
          this.#definition.delete?.(each, this.#withStateOf(each, args)),
        );
        this.source.recordDeleted(keyOf(run.primary.metadata), each);
        this.#options.writes?.note(run, "deleted", { key, id: this.#idOf(each) });
      } catch (error) {
        failures.push(error);
      }
    if (failures.length > 1) throw new AggregateError(failures, failures.map(messageOf).join("; "));
    if (failures.length > 0) throw failures[0];
    if (this.#definition.bulk === undefined) this.#removedFor.add(run.primary);
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
    if (isDeleted(primary)) return this.#requireConfirmed(primary);
    for (const key of state?.endingOf(primary) ?? []) {
      const isSingle = this.#definition.bulk === undefined;
      const isBack = isSingle ? this.#candidatesFor(primary).length > 0 : this.findItems({ primary }).has(key);
      if (!isBack) await state?.set(primary, key, undefined);
    }
  }

  release({ primary, context }: DependentRun, { error, item }: { error: unknown; item?: string | undefined }): boolean {
    const { name, onDeleteFailure } = this.#definition;
    // An error that says when to try again is no end.
    const isOver = isDeleted(primary) && findError(error, "RetryAfterError") === undefined;
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
    const { create } = this.#definition;
    if (create === undefined) return "absent";
    const { state, writes, grace } = this.#options;
    const { primary, context } = run;
    const key = this.#keyOf(wanted);
    this.#requireProof(primary, key);
    const graceMs = grace?.remainingMs(primary) ?? 0;
    if (graceMs > 0) {
      this.source.invalidate(keyOf(primary.metadata));
      grace?.reconcileAfter(primary, graceMs);
      const because = `the operator started just now, and what it created before may not be listed yet; it is fetched again in ${Math.ceil(graceMs / 1000)} s`;
      return { because };
    }
    const write: ExternalWrite = { key, id: wanted.id, desired: wanted.object };
    const postponed = writes?.postponementOf(run, write);
    if (postponed !== undefined) return { postponed };
    const created = checkReturned(
      "create",
      await this.#attempt(run, "create", key, (args) => create(wanted.object, args)),
    );
    const id = this.#idOf(created);
    writes?.note(run, "created", { ...write, id });
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
    if (this.#isOwn(created, primary) === false)
      throw new TerminalError(
        `create() returned a resource (id "${id}") that isOwn says is of another dependent, so that it will not be found again`,
      );
    if (state === undefined && wanted.id !== "" && wanted.id !== id)
      throw new TerminalError(
        `create() returned a resource with the id "${id}" for one with the id "${wanted.id}", which will not be found again; make idOf return ` +
          "what both have, or let the runtime keep the id (state)",
      );
    this.#checkAlone(primary, created);
    // By its token a service may have recognised an earlier attempt, which was for another desired state.
    const { update } = this.#definition;
    if (update !== undefined && !this.#matches(wanted.object, created, primary))
      grace?.reconcileAfter(primary, RECONCILE_AGAIN_MS);
    return "created";
  }

  // A change that fails, or runs out of time while it is in flight, may have an effect all the same.
  async #attempt<Result>(
    run: DependentRun,
    name: "create" | "update" | "delete",
    key: string,
    change: (args: AttemptArguments) => Result | Promise<Result>,
  ): Promise<Result> {
    const { primary } = run;
    const { signal } = run.context;
    const state = this.#options.state?.read(primary).get(key);
    const invalidate = () => this.source.invalidate(keyOf(primary.metadata));
    signal.addEventListener("abort", invalidate, { once: true });
    try {
      const token = tokenOf(primary, [this.#definition.name, key, state && idIn(state)]);
      const what = `${name}() of dependent "${this.#definition.name}"`;
      const call = { what, primary: keyOf(primary.metadata) };
      return await userCalls.track(call, () => change({ ...argumentsOf(run), state, token }));
    } catch (error) {
      invalidate();
      throw error;
    } finally {
      signal.removeEventListener("abort", invalidate);
    }
  }

  // What is kept is of one of several resources.
  #withStateOf(resource: object, { state, ...args }: AttemptArguments): AttemptArguments {
    return { ...args, state: state !== undefined && idIn(state) === this.#idOf(resource) ? state : undefined };
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
    if (isDeleted(primary) && !this.source.isShared) return all;
    const own = kept === undefined ? [] : all.filter((each) => this.#idOf(each) === idIn(kept));
    // A resource that was created, but whose id could not be kept, is found by its source if that knows nothing else.
    return own.length > 0 || this.source.isShared ? own : all;
  }

  /** Throws while something may belong to a primary that is being deleted, and no fetch shows it. */
  #requireConfirmed(primary: KubernetesObject): void {
    const { grace } = this.#options;
    const graceMs = grace?.remainingMs(primary) ?? 0;
    if (graceMs === 0 || this.#definition.delete === undefined || this.#removedFor.has(primary)) return;
    this.source.invalidate(keyOf(primary.metadata));
    throw new RetryAfterError(
      `the operator started just now, and a resource that it created before may not be listed yet; it is fetched again in ${Math.ceil(graceMs / 1000)} s`,
      graceMs,
    );
  }

  /** Throws if other resources than the only one of a dependent belong to its primary: they would stay for as long as the primary lives. */
  #checkAlone(primary: KubernetesObject, resource: object): void {
    const { bulk, delete: remove } = this.#definition;
    if (bulk !== undefined || remove === undefined) return;
    const all = this.#options.state !== undefined && this.source.isShared ? [] : this.#ownOf(primary);
    const id = this.#idOf(resource);
    const others = all.filter((each) => this.#idOf(each) !== id);
    if (others.length > 0) throw this.#ambiguity([resource, ...others]);
  }

  #ambiguity(found: readonly object[]): Error {
    const ids = found.map((each) => `"${this.#idOf(each)}"`).join(", ");
    return new Error(
      `expected one resource, found ${found.length} (${ids}) that belong to this primary; delete those that it does not need, or make the dependent ` +
        "a bulk dependent, which deletes what desired() does not return. If they are of other dependents, say which is which (isOwn), or let the " +
        "runtime keep its id (state)",
    );
  }

  /** Throws if a state is kept that nothing proves: its resource may be another one's, or the one that must not be created twice. */
  #requireProof(primary: KubernetesObject, key: string): void {
    const unproven = this.#options.state?.unprovenOf(primary, key);
    if (unproven !== undefined) throw unprovenError(unproven);
  }

  #releases(primary: KubernetesObject): boolean {
    return isDeleted(primary) && this.#definition.onDeleteFailure === "release";
  }

  #ownOf(primary: KubernetesObject): readonly object[] {
    const all = this.source.secondariesOf(primary) as readonly object[];
    return all.filter((each) => this.#isOwn(each, primary));
  }

  #isOwn(resource: object, primary: KubernetesObject): boolean {
    const { isOwn } = this.#definition;
    return isOwn === undefined || this.#run("isOwn", () => isOwn(resource, primary), primary);
  }

  #matches(desired: object, live: object, primary: KubernetesObject): boolean {
    const { matches } = this.#definition;
    return matches === undefined
      ? isDeepStrictEqual(desired, live)
      : this.#run("matches", () => matches(desired, live), primary);
  }

  /** Calls a function of the user that is not asynchronous. */
  #run<Result>(name: string, call: () => Result, primary?: KubernetesObject): Result {
    const what = `${name} of dependent "${this.#definition.name}"`;
    return userCalls.run({ what, primary: primary && keyOf(primary.metadata) }, call);
  }

  #keyOf({ id }: Wanted): string {
    return this.#definition.bulk === undefined ? SINGLE : id;
  }

  /** Returns what is to be kept of a resource; throws a TerminalError if it would not lead back to the resource. */
  #stateOf(resource: object): KeptState {
    const id = this.#idOf(resource);
    const { stateOf } = this.#definition;
    if (stateOf === undefined) return id;
    const state: unknown = this.#run("stateOf", () => stateOf(resource));
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
    const { idOf } = this.#definition;
    const id: unknown = idOf === undefined ? "" : (this.#run("idOf", () => idOf(resource)) ?? "");
    if (typeof id === "string") return id;
    // A kept id is a text: the resource would be taken for one that nobody wants, deleted, and created again.
    throw new TerminalError(`idOf() returned a ${typeof id} (${String(id)}); it has to return a text`);
  }
}

function isDeleted({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

// The same for each attempt to create a resource, in whatever process; another one when that resource is gone and its id was kept.
function tokenOf({ metadata: { uid } }: KubernetesObject, facts: readonly unknown[]): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([uid, ...facts]))
    .digest("hex");
  // A UUID of the version for own formats (RFC 9562).
  return [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `a${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ].join("-");
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
