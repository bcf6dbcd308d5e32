// Reconciles and deletes one object: of a dependent, or an item of a bulk dependent. `run.ts` decides when.
import { RetryAfterError } from "../base/errors.js";
import { describeObject, isTerminating, keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { crdPresent, readsLiveAlone } from "./conditions/builtin-conditions.js";
import {
  isKubernetes,
  needsCleanup,
  type Condition,
  type ConditionArguments,
  type Conditions,
  type DependentDefinition,
} from "./definition/workflow-definition.js";
import {
  argumentsOf,
  type DependentReconciler,
  type EndedObject,
  type Live,
  type UnseenObject,
  type Wanted,
  type WriteOutcome,
} from "./dependents/dependent-reconciler.js";
import { InputReads } from "./input-reads.js";
import type { LiveItems } from "./live-items.js";
import { LiveReads, type SeenVersions } from "./live-reads.js";
import type { Run } from "./step.js";
import type { ConditionResults, DependentOutcome } from "./workflow-result.js";

/** How often `desired` is asked in one step whose object changes meanwhile. */
const MAX_ATTEMPTS = 3;
const TRY_AGAIN_AFTER_MS = 1_000;

/** An object of a dependent in one run, and what is known of it so far; a retry does not repeat what succeeded. */
export class Target {
  readonly definition: DependentDefinition;
  readonly reconciler: DependentReconciler;
  /** The key, if it is an item of a bulk dependent. */
  readonly item: string | undefined;
  conditions: { -readonly [Name in keyof ConditionResults]: ConditionResults[Name] } = {};
  desired: { readonly object: unknown; readonly seen: SeenVersions | undefined } | undefined;
  wanted: Wanted | undefined;
  readonly #items: LiveItems | undefined;
  #written:
    Exclude<WriteOutcome, "waiting" | "absent" | UnseenObject | EndedObject | { readonly because: string }> | undefined;
  #attempts = 0;
  /** Whether a condition was asked last, and did not answer. */
  #isAsking = false;
  #isDeleted = false;

  /** `of` says of which item it is. */
  constructor(
    { definition, reconciler }: Pick<Target, "definition" | "reconciler">,
    of?: { readonly item: string; readonly items: LiveItems },
  ) {
    this.definition = definition;
    this.reconciler = reconciler;
    this.item = of?.item;
    this.#items = of?.items;
  }

  /**
   * Tells whether the dependent is active, and watches its objects for as long as it is. For a deletion its condition is not evaluated while the
   * primary is being deleted: an object that was created has to be deleted, whatever the condition says by now.
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
      // What is held for the cleanup stays until then.
      if (isDeletion || !isOver) await this.#releaseInactive(run);
      await source.deactivate(key);
    }
    return isActive;
  }

  /** Puts the finalizer on the primary if there is something to clean up already, or if nobody knows whether there is. */
  async guardCleanup(run: Run): Promise<void> {
    if (needsCleanup(this.definition) && mayHaveAny(this.reconciler, run.primary)) await run.ensureFinalizer?.();
  }

  // Without the watch nothing would release what is held.
  async #releaseInactive(run: Run): Promise<void> {
    const { definition, reconciler } = this;
    if (isKubernetes(definition) && definition.heldForCleanup === true) await reconciler.releaseHeld?.(run, new Set());
  }

  /** Tells whether a condition holds. It is asked once in a run; an absent condition holds. */
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
      // The items of a bulk dependent are no one object.
      live: definition.bulk !== undefined && item === undefined ? undefined : this.#live(run)?.object,
      ...(item === undefined ? {} : { item }),
    };
  }

  // A condition that cannot be evaluated any more, as an object that it reads is gone, is met as soon as its own object is.
  async #askWithoutInputs(
    run: Run,
    args: ConditionArguments<object, object>,
    ask: (args: ConditionArguments<object, object>) => Promise<ConditionResult>,
  ): Promise<ConditionResult> {
    const { definition, reconciler } = this;
    // Nothing ends the wait for an object that the operator does not delete: then the error has to be seen.
    if (!reconciler.capabilities.remove) return ask(args);
    const reads = new InputReads(definition.name);
    let result: ConditionResult | undefined;
    let problem: unknown;
    try {
      result = await ask(reads.observe(args as never) as never);
      const isOfLive = readsLiveAlone(definition.deletePostcondition);
      if (result.isMet || !(isOfLive || reads.lacksAll)) return result;
    } catch (error) {
      const isExcused = reads.lacksAny || run.isPrimaryUnknown === true;
      if (run.context.signal.aborted || !isExcused) throw error;
      problem = error;
    }
    if (!this.#isConfirmedGone(run)) return result ?? { isMet: false };
    const why = problem === undefined ? "is false" : `failed (${messageOf(problem)})`;
    const missing = reads.lacksAny ? reads.describeMissing() : "nothing is known of its primary, which is gone";
    const text = `the deletePostcondition of dependent "${definition.name}" ${why}, and ${missing}: met, as its own object is gone`;
    run.context.logger.info({ dependent: definition.name }, text);
    return { isMet: true };
  }

  /** Tells whether nothing is left of the object, after the lookup that precedes each deletion. */
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

  /** Asks `desired` what the object should be, or the items of a bulk dependent, if anything of them is to be written at all. */
  async desire(run: Run): Promise<void> {
    const { definition } = this;
    const { desired, name } = definition;
    if (!this.reconciler.capabilities.write || this.desired !== undefined) return;
    const reads = new LiveReads();
    const args = argumentsOf(run);
    const observed = isKubernetes(definition) ? reads.observe(args, definition) : args;
    const compute = () => desired?.(observed as never) as unknown;
    const object = await run.track(`desired() of dependent "${name}"`, compute);
    this.desired = { object, seen: reads.versions };
  }

  /** Returns the outcome of a step that has to wait, because nothing is known where its objects are; undefined if all is known. */
  async waitForKnown(run: Run): Promise<DependentOutcome | undefined> {
    if (this.reconciler.isPartlyUnknown?.(run) !== true) return undefined;
    await this.desire(run);
    const because = this.desired && this.reconciler.unknownOf?.(run, this.desired.object);
    return because === undefined ? undefined : { kind: "waiting", for: [], because };
  }

  /** Forgets what was computed, so that the step starts anew. Throws a RetryAfterError after too many attempts. */
  restart(run: Run): void {
    const { definition, conditions } = this;
    if (++this.#attempts >= MAX_ATTEMPTS) {
      const all = run.notes.discovered.entriesOf(definition.name);
      const what = all.map(({ object }) => describeObject(object, object.metadata)).join(", ");
      throw new RetryAfterError(
        `${what} changed ${MAX_ATTEMPTS} times while desired() was computed`,
        TRY_AGAIN_AFTER_MS,
      );
    }
    // The watch goes on while the activation condition is asked again.
    for (const name of Object.keys(conditions)) delete conditions[name as keyof Conditions];
    this.desired = this.wanted = this.#written = undefined;
  }

  /**
   * Makes the object as wanted, if anything is to be written at all, and asks whether it is ready. Returns `unseen` if there is an object that
   * `desired` has not seen: it is noted for the next attempt.
   */
  async reconcile(run: Run): Promise<DependentOutcome | "unseen"> {
    const { reconciler, definition, item } = this;
    const { signal } = run.context;
    const name = item === undefined ? definition.name : `${definition.name}[${item}]`;
    signal.throwIfAborted();
    if (this.desired !== undefined) this.wanted ??= reconciler.complete(run, this.desired.object);
    const { wanted } = this;
    if (wanted !== undefined) {
      if (needsCleanup(definition)) await run.ensureFinalizer?.();
      const write = () => reconciler.write(run, wanted, this.#live(run), this.desired?.seen);
      const written = this.#written ?? (await this.#change(run, write));
      signal.throwIfAborted();
      if (typeof written === "object" && "unseen" in written) {
        run.notes.discovered.add({ dependent: definition.name, item }, written);
        return "unseen";
      }
      if (written !== "absent") await this.#hold(run);
      if (written === "waiting")
        return { kind: "waiting", for: [], because: "the object is being deleted", isHeld: true };
      if (written === "absent") return { kind: "waiting", for: [name] };
      if (typeof written === "object" && "because" in written) {
        if (written.untilEnd === true && (await this.#judge(run, wanted)).hasEnded) return this.reconcile(run);
        return { kind: "waiting", for: [], because: written.because };
      }
      if (typeof written === "object" && "ended" in written) return this.#end(written.ended);
      this.#written = written;
    } else if (this.#live(run) === undefined) return { kind: "waiting", for: [definition.name] };
    else await this.#hold(run);
    const { isReady } = await this.#judge(run, wanted);
    const written = this.#written ?? "unchanged";
    // A postponed write leaves the object as it is, and nothing waits for it.
    return typeof written === "string"
      ? { kind: written, isReady }
      : { kind: "unchanged", isReady, postponed: written.postponed };
  }

  /** Asks whether the object is ready, and keeps that where it has to be known later. */
  async #judge(
    run: Run,
    wanted: Wanted | undefined,
  ): Promise<{ readonly isReady: boolean; readonly hasEnded: boolean }> {
    const isReady = await this.ask("readyPostcondition", run);
    const made = wanted && this.#live(run);
    if (made === undefined) return { isReady, hasEnded: false };
    return { isReady, hasEnded: (await this.reconciler.remember?.(run, wanted!, made, isReady)) === true };
  }

  // Its readyPostcondition has no object to look at any more.
  #end({ isReady: isMet, ...detail }: EndedObject["ended"]): DependentOutcome {
    if (this.definition.readyPostcondition !== undefined) this.conditions.readyPostcondition = { isMet, ...detail };
    return { kind: "unchanged", isReady: isMet };
  }

  async #hold(run: Run): Promise<void> {
    if (!isKubernetes(this.definition) || this.definition.heldForCleanup !== true) return;
    const live = this.#live(run);
    if (live === undefined) return;
    await run.ensureFinalizer?.();
    await this.reconciler.hold?.(run, live);
  }

  /** Deletes the object if its reconciler may, and asks whether it is gone. `known` is the live object, if it need not be looked for. */
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
    // The primary goes all the same.
    const isAwaited = live !== undefined && run.primary.metadata.deletionTimestamp === undefined;
    const isHeld = isAwaited && reconciler.isHeld?.(live) === true;
    return { kind: "deleted", isGone, because, ...(isHeld && { isHeld }) };
  }

  /** Returns the outcome of a deletion that failed: the object is left if its reconciler says so. Throws any other error. */
  release(run: Run, error: unknown): DependentOutcome {
    const { reconciler, item } = this;
    const mayRelease = !this.#isAsking && !this.#isDeleted && !run.context.signal.aborted;
    if (!mayRelease || reconciler.release?.(run, { error, item }) !== true) throw error;
    return { kind: "left" };
  }

  /** Returns an outcome with the results of the conditions, as far as they were asked. */
  withConditions(outcome: DependentOutcome): DependentOutcome {
    const { conditions } = this;
    return Object.keys(conditions).length === 0 ? outcome : { ...outcome, conditions };
  }

  /** Returns the outcome of a step that failed, with an error that names the dependent, and of a bulk dependent the item. */
  failure(error: unknown): DependentOutcome {
    const which = this.item === undefined ? "" : `, item "${this.item}"`;
    const message = `dependent "${this.definition.name}"${which}: ${messageOf(error)}`;
    return { kind: "failed", error: new Error(message, { cause: error }) };
  }

  /** Writes or removes the object. What is known of an item is looked at again after that. */
  async #change<Result>(run: Run, change: () => Promise<Result>): Promise<Result> {
    let result: Result | undefined;
    try {
      const changing = change();
      if (this.definition.timeoutMs !== undefined) run.linger?.(changing);
      return (result = await changing);
    } finally {
      if (result !== "unchanged") this.#items?.change(this.item!);
    }
  }

  /** Looks for objects that the watch does not show, before they are deleted. */
  async discover(run: Run): Promise<void> {
    await this.reconciler.discover?.(run, () => this.desire(run).then(() => this.desired?.object));
  }

  #live(run: Run): Live | undefined {
    const { reconciler, item, wanted } = this;
    const items = this.#items;
    return items === undefined || wanted !== undefined ? reconciler.find(run, wanted, items) : items.get(item!);
  }
}

/** Tells whether there may be anything that has to be cleaned up before a primary goes: what cannot be fetched may be there. */
export function mayHaveAny(reconciler: DependentReconciler, primary: KubernetesObject): boolean {
  try {
    return reconciler.hasAny?.({ primary }) === true;
  } catch {
    return true;
  }
}

type ConditionResult = NonNullable<ConditionResults[keyof Conditions]>;

// A precondition that lacks its `return` would delete the dependent.
function checkResult(name: keyof Conditions, returned: unknown): ConditionResult {
  if (typeof returned === "boolean") return { isMet: returned };
  const { isMet, detail } = Object(returned) as { isMet?: unknown; detail?: never };
  if (typeof isMet === "boolean") return detail === undefined ? { isMet } : { isMet, detail };
  const found = returned === null ? "null" : typeof returned;
  throw new TypeError(`its ${name} returned ${found} instead of true, false or { isMet, detail }`);
}
