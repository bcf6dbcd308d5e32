// A step of a run (JOSDK's NodeExecutor): reconciles or deletes one object of a dependent, or of an item of a bulk dependent. A step takes
// slots, and has a timeout and retries. `run.ts` decides when it starts.
import { RetryAfterError, findError } from "../base/errors.js";
import {
  type Defined,
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  describeObject,
  isTerminating,
  keyOf,
  nameOfType,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { type Clock, sleep, systemClock, untilAborted } from "../base/wait.js";
import { crdPresent, readsLiveAlone } from "./conditions.js";
import {
  type CallUser,
  type DependentReconciler,
  type DependentRun,
  type EndedObject,
  type Live,
  type LiveItems,
  type ReachedWrite,
  type SeenVersions,
  UNCHANGED,
  type Wanted,
  type WriteOutcome,
  argumentsOf,
} from "./dependent-reconciler.js";
import type { ConditionResults, DependentOutcome } from "./run.js";
import {
  type Condition,
  type ConditionArguments,
  type Conditions,
  type DependentArguments,
  type DependentDefinition,
  type NodeDefinition,
  type StepRetry,
  isHeldForCleanup,
  isKubernetes,
  needsCleanup,
} from "./workflow-definition.js";

/** How often a step calls `desired` if its object changes in the meantime. */
const MAX_ATTEMPTS = 3;
const TRY_AGAIN_AFTER_MS = 1_000;

/** The state of one object of a dependent in one run. Retries keep it, so that they do not repeat what succeeded. */
export class Target {
  readonly definition: DependentDefinition;
  readonly reconciler: DependentReconciler;
  /** The item key, if this is an item of a bulk dependent. */
  readonly item: string | undefined;
  conditions: { -readonly [Name in keyof ConditionResults]: ConditionResults[Name] } = {};
  desired: { readonly object: unknown; readonly seen: SeenVersions | undefined } | undefined;
  wanted: Wanted | undefined;
  readonly #items: LiveItems | undefined;
  #written: ReachedWrite | undefined;
  #attempts = 0;
  /** Whether a condition is being evaluated, or its evaluation has failed. */
  #isAsking = false;
  #isDeleted = false;

  constructor(
    { definition, reconciler }: { readonly definition: DependentDefinition; readonly reconciler: DependentReconciler },
    of?: { readonly item: string; readonly items: LiveItems },
  ) {
    this.definition = definition;
    this.reconciler = reconciler;
    this.item = of?.item;
    this.#items = of?.items;
  }

  /**
   * Reports whether the dependent is active, and starts or stops its watch accordingly. If the primary is being deleted, a deletion does not evaluate
   * the condition: an object that was created has to be deleted, whatever the condition returns now.
   */
  async activate(run: Run, { isDeletion = false } = {}): Promise<boolean> {
    const { activationCondition, name } = this.definition;
    if (activationCondition === undefined) return true;
    const { source } = this.reconciler;
    const key = keyOf(run.primary.metadata);
    const isOver = isTerminating(run.primary);
    const isActive = await (isOver && isDeletion ? this.#isServed(run) : this.ask("activationCondition", run));
    if (isActive) await run.track(`the watch of dependent "${name}"`, () => source.activate(key));
    else {
      // Held objects stay held until the cleanup.
      if (isDeletion || !isOver) await this.#releaseInactive(run);
      await source.deactivate(key);
    }
    return isActive;
  }

  /** Adds the finalizer to the primary if there is, or may be, anything to clean up. */
  async guardCleanup(run: Run): Promise<void> {
    if (needsCleanup(this.definition) && mayHaveAny(this.reconciler, run.primary))
      await run.reconcile.ensureFinalizer?.();
  }

  // Without the watch, nothing would release held objects.
  async #releaseInactive(run: Run): Promise<void> {
    if (isHeldForCleanup(this.definition)) await this.reconciler.holds?.releaseAll(run, new Set());
  }

  /** Evaluates a condition, unless its result is known already. An absent condition is met. */
  async ask(name: keyof Conditions, run: Run): Promise<boolean> {
    const { definition, conditions } = this;
    const condition: Condition<never, never> | undefined = definition[name];
    if (condition === undefined) return true;
    const known = conditions[name];
    if (known !== undefined) return known.isMet;
    const args = this.#conditionArgumentsOf(run);
    this.#isAsking = true;
    const ask = async (args: ConditionArguments<object, object>) =>
      checkResult(
        name,
        await run.track(`the ${name} of dependent "${definition.name}"`, () => condition(args as never)),
      );
    const isOfCleanup = name === "deletePostcondition" && isTerminating(run.primary);
    const result = await (isOfCleanup ? this.#askWithoutInputs(run, args, ask) : ask(args));
    this.#isAsking = false;
    conditions[name] = result;
    return result.isMet;
  }

  #conditionArgumentsOf(run: Run): ConditionArguments<object, object> {
    const { definition, reconciler, item } = this;
    const dependent = {
      name: definition.name,
      ...(isKubernetes(definition) ? { definition: definition.resource } : {}),
      ...(reconciler.client === undefined ? {} : { client: reconciler.client }),
    };
    return {
      ...{ ...argumentsOf(run), ...(run.present && { secondary: run.present }), dependent },
      // A bulk dependent has no single live object.
      live: definition.bulk !== undefined && item === undefined ? undefined : this.#live(run)?.object,
      ...(item === undefined ? {} : { item }),
    };
  }

  // A condition that cannot be evaluated any more, because an object that it reads was deleted, is met once its own object is deleted.
  async #askWithoutInputs(
    run: Run,
    args: ConditionArguments<object, object>,
    ask: (args: ConditionArguments<object, object>) => Promise<ConditionResult>,
  ): Promise<ConditionResult> {
    const { definition, reconciler } = this;
    // The operator does not delete the object, so the wait might never end: report the error.
    if (!reconciler.capabilities.remove) return ask(args);
    const reads = new InputReads(definition.name);
    let result: ConditionResult | undefined;
    let problem: unknown;
    try {
      result = await ask(reads.observe(args as never) as never);
      const isOfLive = readsLiveAlone(definition.deletePostcondition);
      if (result.isMet || !(isOfLive || reads.lacksAll)) return result;
    } catch (error) {
      const isExcused = reads.lacksAny || run.reconcile.isPrimaryUnknown === true;
      if (run.context.signal.aborted || !isExcused) throw error;
      problem = error;
    }
    if (!this.#isConfirmedGone(run)) return result ?? { isMet: false };
    const why = problem === undefined ? "is false" : `failed (${messageOf(problem)})`;
    const isOfPrimary = run.reconcile.isPrimaryUnknown === true && !reads.lacksAny;
    const missing = isOfPrimary ? "its primary was deleted and its last state is unknown" : reads.describeMissing();
    const text = `the deletePostcondition of dependent "${definition.name}" ${why}, and ${missing}: treated as met, because its object is deleted`;
    run.context.logger.info({ dependent: definition.name }, text);
    return { isMet: true };
  }

  /** Reports whether the object is deleted, including objects found by the lookup before each deletion. */
  #isConfirmedGone(run: Run): boolean {
    const { reconciler, definition, item } = this;
    if (definition.bulk !== undefined && item === undefined) return reconciler.findItems(run).size === 0;
    return this.#live(run) === undefined;
  }

  async #isServed(run: Run): Promise<boolean> {
    if (!isKubernetes(this.definition)) return true;
    const args = this.#conditionArgumentsOf(run);
    return run.track(
      `the search for the kind of dependent "${this.definition.name}"`,
      async () => crdPresent(args as never) as unknown as Promise<boolean>,
    );
  }

  /** Calls `desired`, unless nothing is written or it has been called already. */
  async desire(run: Run): Promise<void> {
    const { definition } = this;
    const { desired, name } = definition;
    if (!this.reconciler.capabilities.write || this.desired !== undefined) return;
    const reads = isKubernetes(definition) ? new LiveReads(definition) : undefined;
    const args = argumentsOf(run);
    const observed = reads?.observe(args) ?? args;
    const compute = () => desired?.(observed as never) as unknown;
    const object = await run.track(`desired() of dependent "${name}"`, compute);
    this.desired = { object, seen: reads?.versions };
  }

  /** Returns a waiting outcome if the namespace of a desired object has no synced watch. */
  async waitForKnown(run: Run): Promise<DependentOutcome | undefined> {
    if (this.reconciler.isPartlyUnknown?.(run) !== true) return undefined;
    await this.desire(run);
    const because = this.desired && this.reconciler.unknownOf?.(run, this.desired.object);
    return because === undefined ? undefined : { kind: "waiting", for: [], because };
  }

  /** Drops all results, to restart the step. Throws a RetryAfterError after too many attempts. */
  restart(run: Run): void {
    const { definition, conditions } = this;
    if (++this.#attempts >= MAX_ATTEMPTS) {
      const all = run.reconcile.notes.discovered.entriesOf(definition.name);
      const what = all.map(({ object }) => describeObject(object, object.metadata)).join(", ");
      throw new RetryAfterError(
        `${what} changed ${MAX_ATTEMPTS} times while desired() was computed`,
        TRY_AGAIN_AFTER_MS,
      );
    }
    // The watch stays active while the activation condition is evaluated again.
    for (const name of Object.keys(conditions)) delete conditions[name as keyof Conditions];
    this.desired = this.wanted = this.#written = undefined;
  }

  /**
   * Writes the object and evaluates the readyPostcondition. Returns `unseen` if `desired` has not read the existing object, which is recorded for the
   * next attempt.
   */
  async reconcile(run: Run): Promise<DependentOutcome | "unseen"> {
    const { reconciler, definition, item } = this;
    const { signal } = run.context;
    const name = item === undefined ? definition.name : `${definition.name}[${item}]`;
    signal.throwIfAborted();
    if (this.desired !== undefined) this.wanted ??= reconciler.complete(run, this.desired.object);
    const { wanted } = this;
    if (wanted !== undefined) {
      if (needsCleanup(definition)) await run.reconcile.ensureFinalizer?.();
      const write = () => reconciler.write(run, wanted, this.#live(run), this.desired?.seen);
      const written = this.#written ?? (await this.#change(run, write));
      signal.throwIfAborted();
      if (written.kind === "unseen") {
        run.reconcile.notes.discovered.add({ dependent: definition.name, item }, written);
        return "unseen";
      }
      // A postponed write includes the hold finalizer.
      if (written.kind !== "absent" && written.kind !== "postponed") await this.#hold(run);
      switch (written.kind) {
        case "terminating":
          return { kind: "waiting", for: [], because: "the object is being deleted", isHeld: true };
        case "absent":
          return { kind: "waiting", for: [name] };
        case "blocked":
          if (written.untilEnd === true && (await this.#judge(run, wanted)).hasEnded) return this.reconcile(run);
          return { kind: "waiting", for: [], because: written.because };
        case "ended":
          return this.#end(written);
        default:
          this.#written = written;
      }
    } else if (this.#live(run) === undefined) return { kind: "waiting", for: [definition.name] };
    else await this.#hold(run);
    const { isReady } = await this.#judge(run, wanted);
    const written = this.#written ?? UNCHANGED;
    // A postponed write does not block dependents.
    return written.kind === "postponed"
      ? { kind: "unchanged", isReady, postponed: written.postponed }
      : { kind: written.kind, isReady };
  }

  /** Evaluates the readyPostcondition, and records the result with `mode: once`. */
  async #judge(
    run: Run,
    wanted: Wanted | undefined,
  ): Promise<{ readonly isReady: boolean; readonly hasEnded: boolean }> {
    const isReady = await this.ask("readyPostcondition", run);
    const made = wanted && this.#live(run);
    if (made === undefined) return { isReady, hasEnded: false };
    return { isReady, hasEnded: (await this.reconciler.remember?.(run, wanted!, made, isReady)) === true };
  }

  // The object was deleted, so its readyPostcondition is not evaluated again.
  #end({ isReady: isMet, detail }: EndedObject): DependentOutcome {
    if (this.definition.readyPostcondition !== undefined)
      this.conditions.readyPostcondition = detail === undefined ? { isMet } : { isMet, detail: detail as never };
    return { kind: "unchanged", isReady: isMet };
  }

  async #hold(run: Run): Promise<void> {
    if (!isHeldForCleanup(this.definition)) return;
    const live = this.#live(run);
    if (live === undefined) return;
    await run.reconcile.ensureFinalizer?.();
    await this.reconciler.holds?.hold(run, live);
  }

  /**
   * Deletes the object, unless its reconciler never does, and evaluates the deletePostcondition. `known` is the live object, if the caller has it.
   */
  async delete(run: Run, because: string, known?: Live): Promise<DependentOutcome> {
    const { reconciler } = this;
    const isRemoved = reconciler.capabilities.remove;
    if (isRemoved && known === undefined && this.#live(run) === undefined) await this.discover(run);
    const live = isRemoved ? (known ?? this.#live(run)) : undefined;
    run.context.signal.throwIfAborted();
    if (live !== undefined) await this.#change(run, () => reconciler.remove(run, live));
    this.#isDeleted = true;
    run.context.signal.throwIfAborted();
    const isGone = await this.ask("deletePostcondition", run);
    if (!isRemoved && isGone) return { kind: "left" };
    // A terminating object does not delay the deletion of its primary.
    const isAwaited = live !== undefined && !isTerminating(run.primary);
    const isHeld = isAwaited && reconciler.isHeld?.(live) === true;
    return { kind: "deleted", isGone, because, ...(isHeld && { isHeld }) };
  }

  /** Returns the outcome of a failed deletion if the reconciler leaves the object. Otherwise rethrows the error. */
  leaveFailed(run: Run, error: unknown): DependentOutcome {
    const { reconciler, item } = this;
    const mayRelease = !this.#isAsking && !this.#isDeleted && !run.context.signal.aborted;
    if (!mayRelease || reconciler.release?.(run, { error, item }) !== true) throw error;
    return { kind: "left" };
  }

  /** Adds the results of the evaluated conditions. */
  withConditions(outcome: DependentOutcome): DependentOutcome {
    const { conditions } = this;
    return Object.keys(conditions).length === 0 ? outcome : { ...outcome, conditions };
  }

  /** Returns a failed outcome. Its error message contains the dependent and the item. */
  failure(error: unknown): DependentOutcome {
    const which = this.item === undefined ? "" : `, item "${this.item}"`;
    const message = `dependent "${this.definition.name}"${which}: ${messageOf(error)}`;
    return { kind: "failed", error: new Error(message, { cause: error }) };
  }

  /** Writes or deletes the object. A changed item is looked up again afterwards. */
  async #change<Result extends WriteOutcome | void>(run: Run, change: () => Promise<Result>): Promise<Result> {
    let result: Result | undefined;
    try {
      const changing = change();
      if (this.definition.timeoutMs !== undefined) run.reconcile.linger?.(changing);
      return (result = await changing);
    } finally {
      if (result?.kind !== "unchanged") this.#items?.change(this.item!);
    }
  }

  /** Before a deletion, discovers objects that are not in any watch. */
  async discover(run: Run, options?: { readonly isConfirming?: boolean }): Promise<void> {
    await this.reconciler.discover?.(run, () => this.desire(run).then(() => this.desired?.object), options);
  }

  #live(run: Run): Live | undefined {
    const { reconciler, item, wanted } = this;
    const items = this.#items;
    return items === undefined || wanted !== undefined ? reconciler.find(run, wanted, items) : items.get(item!);
  }
}

/** Reports whether there may be anything to clean up before a primary is deleted. True if that cannot be determined. */
export function mayHaveAny(reconciler: DependentReconciler, primary: KubernetesObject): boolean {
  try {
    return reconciler.hasAny?.(primary) === true;
  } catch {
    return true;
  }
}

type ConditionResult = NonNullable<ConditionResults[keyof Conditions]>;

// Strict, because a precondition that forgets to `return` would delete the dependent.
function checkResult(name: keyof Conditions, returned: unknown): ConditionResult {
  if (typeof returned === "boolean") return { isMet: returned };
  const { isMet, detail } = Object(returned) as { isMet?: unknown; detail?: never };
  if (typeof isMet === "boolean") return detail === undefined ? { isMet } : { isMet, detail };
  const found = returned === null ? "null" : typeof returned;
  throw new TypeError(`its ${name} returned ${found} instead of true, false or { isMet, detail }`);
}

/** Limits concurrent steps. */
export interface Slots {
  /** Returns a promise if no slot is free. */
  acquire(signal?: AbortSignal): Promise<void> | undefined;
  release(): void;
}

/** A run as seen by a step. When a step times out, the signal of its context is aborted and `track` throws. */
export interface Run extends DependentRun {
  /** `secondary` without the last states of deleted objects, for conditions. Absent unless the primary is being deleted. */
  readonly present?: object | undefined;
  readonly track: CallUser;
  /** A step takes one slot of each: first of its bulk dependent, then of the workflow. */
  readonly slots: readonly Slots[];
}

/** Thrown by a step that exceeded its `timeoutMs`. */
class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Runs a step with retries. Rejects with the error of the last attempt, or with a TimeoutError; in the latter case `body` may continue, but its
 * result is dropped. `slots` are those to take, if not those of the run.
 */
export async function takeStep<Result>(
  { timeoutMs, retry }: NodeDefinition,
  run: Run,
  body: (step: Run) => Promise<Result>,
  slots = run.slots,
): Promise<Result> {
  const timeout = timeoutMs === undefined ? undefined : new StepTimeout(timeoutMs, run);
  const step = timeout?.step ?? run;
  const { signal } = step.context;
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await inSlots(slots, step, body, timeout);
      } catch (error) {
        if (retry === undefined || attempt > retry.maxRetries || signal.aborted || isFinalError(error)) throw error;
      }
      const pause = sleep(delayMsOf(retry, attempt), signal, clockOf(run));
      await (timeout === undefined ? pause : untilAborted(pause, signal));
    }
  } finally {
    timeout?.end();
  }
}

// A step that times out releases its slots, even if its body never returns.
async function inSlots<Result>(
  slots: readonly Slots[],
  step: Run,
  body: (step: Run) => Promise<Result>,
  timeout: StepTimeout | undefined,
): Promise<Result> {
  const { signal } = step.context;
  const taken: Slots[] = [];
  try {
    for (const slot of slots) {
      const turn = slot.acquire(signal);
      if (turn !== undefined) await turn;
      taken.push(slot);
    }
    timeout?.begin();
    const work = body(step);
    return await (timeout === undefined ? work : untilAborted(work, signal));
  } finally {
    for (const slot of taken) slot.release();
  }
}

function clockOf({ reconcile }: DependentRun): Clock {
  return reconcile.clock ?? systemClock;
}

function delayMsOf(
  { initialIntervalMs = 1_000, multiplier = 1.5, maxIntervalMs = Infinity }: StepRetry,
  attempt: number,
) {
  return Math.min(initialIntervalMs * multiplier ** (attempt - 1), maxIntervalMs);
}

/** Aborts a step after its `timeoutMs`. */
class StepTimeout {
  /** The run as seen by the step. */
  readonly step: Run;
  readonly #timeoutMs: number;
  readonly #run: Run;
  readonly #controller = new AbortController();
  #cancel: (() => void) | undefined;
  /** The user function that the step waits for. */
  #awaited: string | undefined;
  readonly #onGivenUp = (): void => this.#controller.abort(this.#run.context.signal.reason);

  constructor(timeoutMs: number, run: Run) {
    this.#timeoutMs = timeoutMs;
    this.#run = run;
    const { signal } = this.#controller;
    const { context } = run;
    context.signal.addEventListener("abort", this.#onGivenUp);
    if (context.signal.aborted) this.#onGivenUp();
    const { reconcile, primary, secondary, present, slots } = run;
    this.step = {
      ...{ reconcile, primary, secondary, present, slots },
      context: intercept(context, (member, value) => (member === "signal" ? signal : value)),
      track: (what, task) => this.#track(what, task),
    };
  }

  /** Starts the timeout with the first attempt: the wait for a slot does not count. */
  begin(): void {
    this.#cancel ??= clockOf(this.#run).schedule(this.#timeoutMs, () => this.#onTimeout());
  }

  end(): void {
    this.#cancel?.();
    // The signal outlives the step, so the listener would leak.
    this.#run.context.signal.removeEventListener("abort", this.#onGivenUp);
  }

  #onTimeout(): void {
    const where = this.#awaited === undefined ? "" : `, and was waiting for ${this.#awaited}`;
    const message = `it took longer than the ${this.#timeoutMs} ms that it may take${where}`;
    this.#controller.abort(new TimeoutError(message));
  }

  async #track<Result>(what: string, task: () => Result | Promise<Result>): Promise<Result> {
    this.#awaited = what;
    const result = await this.#run.track(what, task);
    this.#controller.signal.throwIfAborted();
    this.#awaited = undefined;
    return result;
  }
}

// An error with its own retry interval is handled by the reconcile: a step does not wait that long.
function isFinalError(error: unknown): boolean {
  return ["TerminalError", "RetryAfterError", "BlockedError"].some((name) => findError(error, name) !== undefined);
}

// Records what a user function reads through `secondary` and the lookups of the context. `desired` must not replace an object in another version than
// it has read, and a condition in a cleanup may fail because an object that it reads was deleted.

type Arguments = DependentArguments<KubernetesObject, object>;
type Lookup = (type: Defined | string, options?: never) => unknown;

interface ReadObserver {
  /** `found` is the value of a member of `secondary`. */
  onMember(name: string, found: unknown): void;
  /** `found` is the result of `context.secondary` or `context.secondaries`. */
  onLookup(type: Defined | string, found: unknown): void;
}

/** Returns a proxy whose members are mapped by `see`. Lazily computed members stay lazy. */
function intercept<Target extends object>(
  target: Target,
  see: (member: string | symbol, value: unknown) => unknown,
): Target {
  return new Proxy(target, { get: (target, member) => see(member, Reflect.get(target, member)) });
}

function observeReads<Args extends Arguments>(args: Args, observer: ReadObserver): Args {
  const seeSecondary = (member: string | symbol, value: unknown) => {
    if (typeof member === "string") observer.onMember(member, value);
    return value;
  };
  const seeContext = (member: string | symbol, value: unknown) => {
    if (member !== "secondary" && member !== "secondaries") return value;
    return (type: Defined | string, options?: never): unknown => {
      const found = (value as Lookup)(type, options);
      observer.onLookup(type, found);
      return found;
    };
  };
  return {
    ...args,
    secondary: intercept(args.secondary, seeSecondary),
    context: intercept(args.context, seeContext),
  };
}

interface OwnDependent {
  readonly name: string;
  readonly resource: ResourceDefinition;
  readonly bulk?: object | undefined;
}

/** The live objects of its own dependent that one call of `desired` reads. */
class LiveReads implements ReadObserver {
  readonly #dependent: OwnDependent;
  readonly #versions = new Map<ObjectKey, string | undefined>();
  #hasRead = false;

  constructor(dependent: OwnDependent) {
    this.#dependent = dependent;
  }

  /** Undefined if nothing was read. */
  get versions(): SeenVersions | undefined {
    return this.#hasRead ? this.#versions : undefined;
  }

  observe(args: Arguments): Arguments {
    return observeReads(args, this);
  }

  onMember(name: string, found: unknown): void {
    if (name !== this.#dependent.name) return;
    this.#note(this.#dependent.bulk === undefined ? [found] : Object.values(found as object));
  }

  onLookup(type: Defined | string, found: unknown): void {
    const { kind, group } = this.#dependent.resource;
    if (typeof type === "string" || type.definition.kind !== kind || type.definition.group !== group) return;
    this.#note(Array.isArray(found) ? found : [found]);
  }

  #note(objects: readonly unknown[]): void {
    this.#hasRead = true;
    for (const object of objects as readonly (KubernetesObject | undefined)[])
      if (object !== undefined) this.#versions.set(keyOf(object.metadata), object.metadata.resourceVersion);
  }
}

/** What one evaluation of a condition reads: members of other dependents and event sources, and lookups of any kind. */
class InputReads implements ReadObserver {
  readonly #dependent: string;
  /** What was read, and whether it was missing. */
  readonly #reads = new Map<string, boolean>();

  constructor(dependent: string) {
    this.#dependent = dependent;
  }

  /** Whether anything that was read is missing. */
  get lacksAny(): boolean {
    return [...this.#reads.values()].includes(true);
  }

  /** Whether anything was read, and all of it is missing. */
  get lacksAll(): boolean {
    return this.#reads.size > 0 && ![...this.#reads.values()].includes(false);
  }

  describeMissing(): string {
    const missing = [...this.#reads].flatMap(([name, isMissing]) => (isMissing ? name : []));
    return missing.length === 0 ? "it reads nothing else" : `${missing.join(", ")}, which it reads, is gone`;
  }

  observe<Args extends Arguments>(args: Args): Args {
    return observeReads(args, this);
  }

  onMember(name: string, found: unknown): void {
    if (name !== this.#dependent) this.#note(name, found);
  }

  onLookup(type: Defined | string, found: unknown): void {
    this.#note(nameOfType(typeof type === "string" ? type : type.definition) ?? "an object", found);
  }

  #note(name: string, value: unknown): void {
    const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
    this.#reads.set(name, value === undefined || isEmpty);
  }
}
