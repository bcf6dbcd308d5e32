import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { LoopDetector, type ObservedWrite } from "../apply/competing-writers.js";
import { EXTERNAL_KIND, type LoopListener, type LoopWrite, type PostponedWrite } from "../base/activity.js";
import { RetryAfterError, TerminalError, findError } from "../base/errors.js";
import { type KubernetesObject, isTerminating, keyOf } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { userCalls } from "../base/user-calls.js";
import type { ExternalDependentSource } from "../sources/dependent-sources.js";
import {
  type DependentReconciler,
  type DependentRun,
  type FindRun,
  type HoldRun,
  type KnownItems,
  type Live,
  UNCHANGED,
  type Wanted,
  type WriteOutcome,
  argumentsOf,
} from "../workflow/dependent-reconciler.js";
import type { ExternalDependent, KeptState } from "../workflow/workflow-definition.js";
import { type Kept, type RememberedState, idIn } from "./external-state.js";

/** The key of the id of a dependent that is a single resource. */
const SINGLE = "";
/** When to reconcile again if a resource differs from the desired one right after its creation. */
const RECONCILE_AGAIN_MS = 1_000;

/** A grace period after the start: a resource that the previous process has just created may be missing in a list. */
export interface StartGrace {
  /** Returns how long such a resource of a primary may still be missing, or 0 if there can be none. */
  remainingMs(primary: KubernetesObject): number;
  /** Reconciles a primary after this time. */
  reconcileAfter(primary: KubernetesObject, ms: number): void;
}

interface ExternalReconcilerOptions {
  readonly definition: ExternalDependent;
  readonly source: ExternalDependentSource;
  /** Stores the ids of created resources. Absent if the dependent has no state. */
  readonly state?:
    Pick<RememberedState, "read" | "isKept" | "unprovenOf" | "lookUp" | "beginEnd" | "endingOf" | "set"> | undefined;
  readonly writes?: ExternalWrites | undefined;
  /** Default: no grace period */
  readonly grace?: StartGrace | undefined;
}

/** A resource with the key of its item. The key is empty unless the dependent is a bulk dependent. */
interface ExternalLive extends Live {
  readonly key: string;
  /** Additional resources of a dependent that should be a single resource. They are deleted together with it. */
  readonly others?: readonly object[];
}

type AttemptArguments = ReturnType<typeof argumentsOf> & {
  readonly state: KeptState | undefined;
  readonly token: string;
};

/** Finds, writes and deletes the resources of a dependent outside of Kubernetes, by calling functions of the user. */
export class ExternalReconciler implements DependentReconciler {
  readonly capabilities: DependentReconciler["capabilities"];
  readonly source: ExternalDependentSource;
  readonly #options: ExternalReconcilerOptions;
  readonly #definition: ExternalDependent;
  /** The objects of primaries whose resource was deleted. */
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
    // The key of an item is its id.
    if (this.#definition.bulk !== undefined)
      return wanted && ((items ?? this.findItems(run)).get(wanted.id) as ExternalLive | undefined);
    const found = this.#candidatesFor(run.primary, wanted);
    const [object, ...others] = found;
    if (object === undefined) return undefined;
    // A deletion deletes all of them. Otherwise, user functions must not get an arbitrary one of several resources.
    const isAmbiguous =
      others.length > 0 && (wanted !== undefined || !(run.reconcile !== undefined || isTerminating(run.primary)));
    if (isAmbiguous) throw this.#ambiguity(found);
    return { object, key: SINGLE, ...(others.length > 0 && { others }) };
  }

  hasAny(primary: KubernetesObject): boolean {
    if (!this.capabilities.remove) return false;
    const { state, source } = this.#options;
    if ((state?.read(primary).size ?? 0) > 0 || state?.unprovenOf(primary) !== undefined) return true;
    // A resource of a shared source may belong to another dependent.
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
      // A resource of a shared source without a stored id may belong to another dependent.
      if (state !== undefined && source.isShared && !keys.has(id)) continue;
      const key = keys.get(id) ?? id;
      items.set(key, { object, key });
    }
    return items;
  }

  async write(run: DependentRun, wanted: Wanted, found: Live | undefined): Promise<WriteOutcome> {
    const { state, source } = this.#options;
    this.#requireProof(run.primary, this.#keyOf(wanted));
    // A failed creation may still have taken effect; a fetch shows whether it has.
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
    // Stores a state that could not be written after the creation or that another client has removed.
    if (state?.isKept(run.primary, key, id) === false) {
      const known = state.read(run.primary).get(key);
      await state.set(run.primary, key, known !== undefined && idIn(known) === id ? known : this.#stateOf(object));
    }
    const { update } = this.#definition;
    const { writes } = this.#options;
    let outcome: WriteOutcome = UNCHANGED;
    if (update === undefined || this.#matches(wanted.object, object, run.primary)) writes?.noteMatch(run, key);
    else {
      const write: ExternalWrite = { key, id, desired: wanted.object };
      const postponed = writes?.postponementOf(run, write);
      if (postponed !== undefined) return { kind: "postponed", postponed };
      const updated = checkReturned(
        "update",
        await this.#attempt(run, "update", key, (args) => update(wanted.object, object, args)),
      );
      source.recordUpdated(keyOf(run.primary.metadata), updated, object);
      writes?.note(run, "updated", write);
      outcome = { kind: "updated" };
    }
    this.#checkAlone(run.primary, object);
    return outcome;
  }

  async remove(run: DependentRun, live: Live): Promise<void> {
    const { object, key, others = [] } = live as ExternalLive;
    this.#options.state?.beginEnd(run.primary, key);
    // A failed deletion does not prevent the others.
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
    // Deleted last: an interrupted deletion finds the resource again by its id.
    await this.#options.state?.set(run.primary, key, undefined);
  }

  // Deletes the states of resources that no longer exist. While the primary is being deleted, its states are deleted together with it.
  async finishRemovals({ primary, context }: HoldRun): Promise<void> {
    const { state } = this.#options;
    if (context.signal.aborted) return;
    const unproven = state?.unprovenOf(primary);
    // The resource may belong to the primary, so the cleanup is incomplete.
    if (unproven !== undefined && !this.#releases(primary)) throw unprovenError(unproven);
    if (isTerminating(primary)) return this.#requireConfirmed(primary);
    for (const key of state?.endingOf(primary) ?? []) {
      const isSingle = this.#definition.bulk === undefined;
      const isBack = isSingle ? this.#candidatesFor(primary).length > 0 : this.findItems({ primary }).has(key);
      if (!isBack) await state?.set(primary, key, undefined);
    }
  }

  release({ primary, context }: DependentRun, { error, item }: { error: unknown; item?: string | undefined }): boolean {
    const { name, onDeleteFailure } = this.#definition;
    // A RetryAfterError means that the deletion is still in progress.
    const isOver = isTerminating(primary) && findError(error, "RetryAfterError") === undefined;
    if (!isOver) return false;
    const isLeft = onDeleteFailure === "release";
    const dependent = item === undefined ? `"${name}"` : `"${name}", item "${item}"`;
    const what = isLeft ? "is left" : "blocks the deletion of its primary";
    const note = `the resource of dependent ${dependent} could not be deleted and ${what}: ${messageOf(error)}`;
    // If the deletion blocks, the reconcile fails, which is logged.
    if (isLeft) context.logger.warn({ dependent: name, item, error }, note);
    context.events.record({ type: "Warning", reason: "DeletionFailed", action: "Delete", note });
    return isLeft;
  }

  async #create(run: DependentRun, wanted: Wanted): Promise<WriteOutcome> {
    const { create } = this.#definition;
    if (create === undefined) return { kind: "absent" };
    const { state, writes, grace } = this.#options;
    const { primary, context } = run;
    const key = this.#keyOf(wanted);
    this.#requireProof(primary, key);
    const graceMs = grace?.remainingMs(primary) ?? 0;
    if (graceMs > 0) {
      this.source.invalidate(keyOf(primary.metadata));
      grace?.reconcileAfter(primary, graceMs);
      const because = `primary was seen for the first time, and resources created earlier may not be listed yet; fetching again in ${Math.ceil(graceMs / 1000)} s`;
      return { kind: "blocked", because };
    }
    const write: ExternalWrite = { key, id: wanted.id, desired: wanted.object };
    const postponed = writes?.postponementOf(run, write);
    if (postponed !== undefined) return { kind: "postponed", postponed };
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
      // The id is sufficient to find the resource again, so that it is not created twice.
      problem = error;
    }
    // After a timeout, a later attempt may also have created the resource and stored its id.
    const isReplaced = context.signal.aborted && state?.read(primary).has(key) === true;
    const keeping = isReplaced ? undefined : state?.set(primary, key, kept);
    // Recorded before the id is written, so that a poll that finds the resource in the meantime does not trigger a reconcile.
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
    // Because of the idempotency token, the service may have returned the resource of an earlier attempt with a different desired state.
    const { update } = this.#definition;
    if (update !== undefined && !this.#matches(wanted.object, created, primary))
      grace?.reconcileAfter(primary, RECONCILE_AGAIN_MS);
    return { kind: "created" };
  }

  // A write that fails or times out may still take effect.
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

  // If there are several resources, the stored state belongs to only one of them.
  #withStateOf(resource: object, { state, ...args }: AttemptArguments): AttemptArguments {
    return { ...args, state: state !== undefined && idIn(state) === this.#idOf(resource) ? state : undefined };
  }

  #candidatesFor(primary: KubernetesObject, wanted?: Wanted): readonly object[] {
    const { state } = this.#options;
    const all = this.#ownOf(primary);
    if (state === undefined) {
      // If the service assigns the id, it is unknown before the creation, and every resource counts.
      const isKnown = wanted !== undefined && wanted.id !== "";
      return isKnown ? all.filter((each) => this.#idOf(each) === wanted.id) : all;
    }
    const kept = state.read(primary).get(SINGLE);
    this.#requireProof(primary, SINGLE);
    if (isTerminating(primary) && !this.source.isShared) return all;
    const own = kept === undefined ? [] : all.filter((each) => this.#idOf(each) === idIn(kept));
    // If the id of a created resource could not be stored, the resource is still found if it is the only one in its source.
    return own.length > 0 || this.source.isShared ? own : all;
  }

  /** Throws during the grace period if the primary is being deleted, because the list may not contain a resource yet. */
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

  /** Throws if a primary has additional resources although the dependent is a single resource. They would remain as long as the primary exists. */
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

  /** Throws if a stored state has no proof. Its resource may belong to another primary, or be the one that must not be created again. */
  #requireProof(primary: KubernetesObject, key: string): void {
    const unproven = this.#options.state?.unprovenOf(primary, key);
    if (unproven !== undefined) throw unprovenError(unproven);
  }

  #releases(primary: KubernetesObject): boolean {
    return isTerminating(primary) && this.#definition.onDeleteFailure === "release";
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

  /** Calls a synchronous user function. */
  #run<Result>(name: string, call: () => Result, primary?: KubernetesObject): Result {
    const what = `${name} of dependent "${this.#definition.name}"`;
    return userCalls.run({ what, primary: primary && keyOf(primary.metadata) }, call);
  }

  #keyOf({ id }: Wanted): string {
    return this.#definition.bulk === undefined ? SINGLE : id;
  }

  /** Returns the state to store for a resource. Throws a TerminalError if it does not identify the resource. */
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
    // Stored ids are strings. A resource with another type of id would not match and would be deleted and created again.
    throw new TerminalError(`idOf() returned a ${typeof id} (${String(id)}); it has to return a text`);
  }
}

// Returns the idempotency token of a creation. It is the same for all attempts to create a resource, across restarts, and changes after a resource
// with a stored id no longer exists.
function tokenOf({ metadata: { uid } }: KubernetesObject, facts: readonly unknown[]): string {
  const digest = hash("sha256", JSON.stringify([uid, ...facts]), "hex");
  // A version 8 UUID (RFC 9562).
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `a${digest.slice(17, 20)}`,
    digest.slice(20, 32),
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

export interface ExternalWriteEvent {
  readonly controller: string;
  readonly dependent: string;
  readonly verb: "created" | "updated" | "deleted";
}

interface ExternalWrite {
  /** The key of the item; empty unless the dependent is a bulk dependent. */
  readonly key: string;
  readonly id: string;
  readonly desired?: object | undefined;
}

interface ExternalWritesOptions {
  readonly controller: string;
  readonly dependent: string;
  /** A function, because the listener exists only while the controller runs. */
  readonly loops: () => LoopListener;
  readonly onWrite?: ((event: ExternalWriteEvent) => void) | undefined;
}

/** Logs, counts and postpones the writes of one external dependent, like a Sender for Kubernetes objects. */
export class ExternalWrites {
  readonly #options: ExternalWritesOptions;
  readonly #detector = new LoopDetector();

  constructor(options: ExternalWritesOptions) {
    this.#options = options;
  }

  postponementOf({ primary }: DependentRun, write: ExternalWrite): PostponedWrite | undefined {
    const { dependent, loops } = this.#options;
    const pause = this.#detector.postponementOf(loopKeyOf(primary, write.key), () => this.#observedOf(primary, write));
    if (pause === undefined) return undefined;
    const { pauseMs, ...loop } = pause;
    const postponed: PostponedWrite = { ...this.#placeOf(write), ...loop, managers: [], retryAfterMs: pauseMs };
    loops().onPostponed(postponed, { primary, dependent });
    return postponed;
  }

  note({ primary, context }: DependentRun, verb: ExternalWriteEvent["verb"], write: ExternalWrite): void {
    const { controller, dependent, loops, onWrite } = this.#options;
    const { key: item, id } = write;
    const fields = { dependent, ...(item === "" ? {} : { item }), ...(id === "" ? {} : { id }) };
    const which = item === "" ? `"${dependent}"` : `"${dependent}", item "${item}"`;
    context.logger.info(fields, `${verb} the resource${id === "" ? "" : ` "${id}"`} of external dependent ${which}`);
    onWrite?.({ controller, dependent, verb });
    // A loop of deletions and creations is detected by its creations.
    if (verb === "deleted") return;
    const loop = this.#detector.noteWrite(loopKeyOf(primary, item), this.#observedOf(primary, write));
    if (loop === undefined) return;
    const written: LoopWrite = { ...this.#placeOf(write), ...loop };
    loops().onLoop(written, { primary, dependent });
  }

  noteMatch({ primary }: DependentRun, key: string): void {
    if (this.#detector.size > 0) this.#detector.noteMatch(loopKeyOf(primary, key));
  }

  #observedOf(primary: KubernetesObject, { desired }: ExternalWrite): ObservedWrite {
    return { content: digestOf(desired), input: this.#options.loops().inputOf(primary) };
  }

  #placeOf({ key }: ExternalWrite): Pick<LoopWrite, "kind" | "object" | "paths"> {
    const { dependent } = this.#options;
    return { kind: EXTERNAL_KIND, object: (key === "" ? dependent : `${dependent}/${key}`) as never, paths: [] };
  }
}

function loopKeyOf({ metadata: { uid = "" } }: KubernetesObject, key: string): string {
  return `${uid} ${key}`;
}

// The desired resource is an object of the user, which may not be serializable as JSON.
function digestOf(desired: object | undefined): string {
  try {
    return hash("sha1", JSON.stringify(desired ?? null), "base64");
  } catch {
    return "";
  }
}
