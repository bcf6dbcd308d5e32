// One run of a workflow (JOSDK's WorkflowReconcileExecutor and WorkflowCleanupExecutor): starts each step as soon as its dependencies allow, and
// collects the outcomes.
import type { PostponedWrite } from "../base/activity.js";
import { type KubernetesObject, isTerminating, memberOf } from "../base/kubernetes-object.js";
import { type Logger, isWritten, messageOf } from "../base/logger.js";
import { type Clock, type Semaphore, systemClock } from "../base/wait.js";
import type { SecondarySources } from "../sources/controller-sources.js";
import { BulkRun } from "./bulk.js";
import type { Context } from "./context.js";
import type {
  DependentReconciler,
  DiscoveredObjects,
  FindRun,
  Live,
  Reconcile,
  Wanted,
} from "./dependent-reconciler.js";
import {
  type NodeState,
  type Plan,
  type Standing,
  blockersOf,
  condemnedBy,
  endsOf,
  isGone,
  isReady,
  nextSteps,
} from "./plan.js";
import { type Run, Target, takeStep } from "./step.js";
import {
  type Conditions,
  type DependentDefinition,
  type WorkflowDefinition,
  isHeldForCleanup,
  needsCleanup,
} from "./workflow-definition.js";

const INACTIVE = "its activationCondition is false";
const DELETED = "the primary is being deleted";
const CLEANED_UP = "the reconciler cleaned up";
const UNWANTED = "its reconcilePrecondition is false";
const UNNAMED = "ref names no object for this primary";

/** Why a dependent must not exist. */
type Refusal = typeof INACTIVE | typeof UNWANTED | typeof UNNAMED;

/** The default of `maxConcurrency`. */
export const MOST_STEPS_AT_ONCE = 50;

/** A workflow that can run for any primary. */
export interface RunnableWorkflow {
  readonly plan: Plan;
  /** The dependents of the controller's other workflows, which are in `secondary` as well. */
  readonly others?: readonly SeenDependent[];
  /** Limits the concurrent steps of all runs of the workflow. */
  readonly slots: Semaphore;
}

/** A run of a workflow in a reconcile. */
export interface RunOptions extends RunnableWorkflow {
  readonly reconcile: Reconcile;
  /** The primary as passed to user functions in this run. */
  readonly primary: KubernetesObject;
  readonly context: Context;
}

/** Reconciles all dependents of a primary, each as soon as its dependencies are ready. */
export function reconcileWorkflow(options: RunOptions): Promise<WorkflowResult> {
  return new WorkflowRun(options, { kind: "pending" }).finish();
}

/** Deletes the dependents of a primary in reverse order. If the primary is being deleted, garbage-collected ones are left. */
export function cleanupWorkflow(options: RunOptions): Promise<WorkflowResult> {
  const isDeleted = isTerminating(options.primary);
  return new WorkflowRun(options, { kind: "condemned", because: isDeleted ? DELETED : CLEANED_UP }).finish();
}

/**
 * Deletes objects that need cleanup but are not in any watch, because another client removed their label; one dependent at a time, in reverse order.
 * Returns whether there are any.
 */
export async function removeUnseen(options: RunOptions): Promise<boolean> {
  const { plan, primary, reconcile, others = [], context } = options;
  const targets = plan.map((node) => new Target(node));
  const { notes, secondaries: sources, track } = reconcile;
  const { discovered } = notes;
  const secondary = createSecondary({ primary, dependents: [...targets, ...others], sources, discovered });
  const run: Run = { reconcile, primary, secondary, context, track, slots: [] };
  for (const { definition, reconciler } of targets.toReversed()) {
    if (!needsCleanup(definition) || !reconciler.capabilities.remove) continue;
    await new Target({ definition, reconciler }).discover(run, { isConfirming: true });
    const found = discovered.entriesOf(definition.name);
    for (const entry of found) if (!isTerminating(entry.object)) await reconciler.remove(run, entry);
    if (found.length > 0) return true;
  }
  return false;
}

/** The state of a dependent in one run. */
interface Step extends Standing {
  readonly target: Target;
  /** The items of a bulk dependent. */
  bulk: BulkRun | undefined;
  /** The run as seen by the dependent. */
  run: Run;
  state: NodeState;
  hasItems: boolean;
}

class WorkflowRun {
  readonly #options: RunOptions;
  readonly #clock: Clock;
  readonly #seen: SecondaryFacts;
  readonly #steps: Step[] = [];
  #running = 0;
  #onIdle: () => void = () => {};

  constructor(options: RunOptions, state: NodeState) {
    const { plan, primary, reconcile, others = [], slots, context } = options;
    const { notes, secondaries: sources, clock = systemClock, track } = reconcile;
    this.#options = options;
    this.#clock = clock;
    const targets = plan.map((node) => new Target(node));
    const { discovered } = notes;
    this.#seen = { primary, dependents: [...targets, ...others], sources, discovered };
    const present = isTerminating(primary) ? createSecondary(this.#seen, { isPresent: true }) : undefined;
    const secondary = createSecondary(this.#seen);
    const run: Run = { reconcile, primary, secondary, present, context, track, slots: [slots] };
    for (const node of plan) {
      const step: Step = { node, target: targets[node.index]!, bulk: undefined, run, state, hasItems: false };
      const needs = endsOf(node.needs, "items").map((each) => this.#steps[each.index]!.bulk!);
      if (node.definition.bulk !== undefined) step.bulk = new BulkRun(step, needs);
      this.#steps.push(step);
    }
  }

  async finish(): Promise<WorkflowResult> {
    const { signal } = this.#options.context;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      this.#advance();
    });
    // Items that needed an undesired item may have been deleted by now.
    for (const step of this.#steps.toReversed())
      if (step.bulk?.isUnswept === true && !signal.aborted) this.#end(step, await step.bulk.sweep());
    signal.throwIfAborted();
    const outcomes = this.#steps.map((step) => {
      const { target, state } = step;
      const isOver = state.kind !== "pending" && state.kind !== "running" && state.kind !== "condemned";
      const waiting = () => ({ kind: "waiting", for: blockersOf(this.#steps, step) }) as const;
      return [target.definition.name, isOver ? state : target.withConditions(waiting())] as const;
    });
    const { logger } = this.#options.context;
    if (isWritten(logger, "debug")) for (const [name, outcome] of outcomes) logOutcome(logger, name, outcome);
    return createWorkflowResult(outcomes);
  }

  // Called after every step, so that no step waits for steps that it does not depend on.
  #advance(): void {
    if (!this.#options.context.signal.aborted) {
      const next = nextSteps(this.#steps);
      for (const step of next.reconcile) void this.#settle(step, () => this.#reconcile(step));
      for (const step of next.delete) void this.#settle(step, () => this.#delete(step));
    }
    if (this.#running === 0) this.#onIdle();
  }

  async #settle(step: Step, work: () => Promise<DependentOutcome | Refusal>): Promise<void> {
    const { reconcile } = this.#options;
    const { tracing } = reconcile;
    const { target } = step;
    const { name: dependent } = target.definition;
    this.#running++;
    const startedAt = this.#clock.now();
    try {
      const outcome = await (tracing?.dependent(dependent, work) ?? work());
      if (typeof outcome !== "string") {
        if (outcome.kind !== "failed") await target.reconciler.finishRemovals?.(this.#options);
        this.#end(step, outcome);
      } else {
        step.bulk?.fail(new Error(outcome));
        const condemned = condemnedBy(this.#steps, step, outcome);
        for (const [each, because] of condemned) each.state = { kind: "condemned", because };
        // An inactive dependent counts as absent: only what depends on it is deleted.
        if (outcome === INACTIVE) this.#end(step, { kind: "inactive" });
      }
    } catch (error) {
      step.bulk?.fail(error);
      this.#end(step, target.failure(error));
    }
    const { kind: outcome } = step.state;
    // Steps of dependents that must not exist are reported after their deletion.
    if (outcome !== "condemned")
      reconcile.onStep?.({ dependent, startedAt, durationMs: this.#clock.now() - startedAt, outcome });
    this.#running--;
    this.#advance();
  }

  async #reconcile(step: Step): Promise<DependentOutcome | Refusal> {
    const { target, bulk } = step;
    step.state = { kind: "running" };
    this.#hideMissing(step);
    for (;;) {
      const outcome = await takeStep(target.definition, step.run, async (run) => {
        if (!(await target.activate(run))) return INACTIVE;
        if (target.reconciler.isNamed?.(run) === false) return UNNAMED;
        if (!(await target.ask("reconcilePrecondition", run))) return UNWANTED;
        await target.guardCleanup(run);
        await target.desire(run);
        const waiting = await target.waitForKnown(run);
        if (waiting !== undefined) return waiting;
        return bulk === undefined ? target.reconcile(run) : undefined;
      });
      const result = outcome ?? (await bulk!.reconcile(() => this.#goOn(step)));
      if (result !== "unseen") return result;
      target.restart(step.run);
    }
  }

  async #delete(step: Step): Promise<DependentOutcome> {
    const { target, bulk, run } = step;
    const { because } = step.state as NodeState & { readonly kind: "condemned" };
    step.state = { kind: "running" };
    const activate = (run: Run) => target.activate(run, { isDeletion: true });
    // Hold the object until the end of the cleanup, which needs the watch to release it.
    if (because === DELETED && isHeldForCleanup(target.definition)) await takeStep(target.definition, run, activate);
    // The garbage collector only acts once the primary is deleted, so waiting for it here would never end.
    if (because === DELETED && target.reconciler.isCollected?.(run) === true) return { kind: "left" };
    const deletion = takeStep(target.definition, run, async (run): Promise<DependentOutcome | undefined> => {
      if (because === DELETED) await this.#activateInputs(step, run);
      if (!(await activate(run))) return { kind: "inactive" };
      // Nothing may remain when the primary is deleted.
      const waiting = because === DELETED ? await target.waitForKnown(run) : undefined;
      if (waiting !== undefined) return waiting;
      return bulk === undefined ? target.delete(run, because) : undefined;
    }).then((outcome) => outcome ?? bulk!.delete(because, () => this.#goOn(step)));
    return deletion.catch((error: unknown) => target.leaveFailed(run, error));
  }

  // Functions that run in a cleanup read dependencies, whose watches are not active after a restart of the operator.
  async #activateInputs({ node }: Step, run: Run): Promise<void> {
    const inputs = new Set(node.needs);
    for (const { node } of inputs) for (const edge of node.needs) inputs.add(edge);
    const targets = [...inputs].map(({ node: { index } }) => this.#steps[index]!.target);
    await Promise.all(targets.map((target) => target.activate(run, { isDeletion: true })));
  }

  // Dependents with `itemsDependOn` continue as soon as the items are known.
  #goOn(step: Step): void {
    step.hasItems = true;
    this.#advance();
  }

  #end(step: Step, outcome: DependentOutcome): void {
    step.state = step.target.withConditions(outcome);
  }

  // If a dependent continues without an optional dependency, it does not see it in `secondary`, even if it still exists.
  #hideMissing(step: Step): void {
    const optional = endsOf(step.node.needs, "optional").map((each) => this.#steps[each.index]!);
    const missing = optional.filter(({ state }) => !isReady(state)).map(({ target }) => target);
    if (missing.length === 0) return;
    const { reconcile, primary, present, context, track, slots } = step.run;
    const secondary = createSecondary(this.#seen, { hidden: missing });
    step.run = { reconcile, primary, secondary, present, context, track, slots };
  }
}

/** A dependent in `secondary`. `wanted` selects one of several objects. */
export interface SeenDependent {
  readonly definition: DependentDefinition;
  readonly reconciler: DependentReconciler;
  readonly wanted?: Wanted | undefined;
}

/** What `secondary` contains. */
interface SecondaryFacts {
  readonly primary: KubernetesObject;
  readonly dependents: readonly SeenDependent[];
  /** The user's event sources. */
  readonly sources?: SecondarySources | undefined;
  /** Objects that are not in any watch. */
  readonly discovered?: DiscoveredObjects | undefined;
}

interface SecondaryOptions {
  readonly hidden?: readonly SeenDependent[];
  /** Whether to exclude the last states of deleted objects while the primary is being deleted. */
  readonly isPresent?: boolean;
}

/**
 * Creates `secondary`: the live objects of dependents and event sources by name, looked up on access. While the primary is being deleted, an object
 * that another client deleted is included in its last state, because the cleanup may need it.
 */
export function createSecondary(
  { primary, dependents, sources, discovered }: SecondaryFacts,
  { hidden = [], isPresent = !isTerminating(primary) }: SecondaryOptions = {},
): object {
  const secondary = {};
  const run = { primary, ...(discovered && { discovered }) };
  const add = (name: string, get: () => unknown) => Object.defineProperty(secondary, name, { enumerable: true, get });
  for (const dependent of dependents) {
    const isHidden = hidden.includes(dependent);
    add(dependent.definition.name, () => visibleOf(dependent, run, { isHidden, isPresent }));
  }
  for (const name of sources?.names() ?? [])
    if (!Object.hasOwn(secondary, name)) add(name, () => sources?.get(name)?.secondariesOf(primary) ?? []);
  return secondary;
}

function visibleOf(
  { definition, reconciler, wanted }: SeenDependent,
  run: FindRun,
  { isHidden, isPresent }: { readonly isHidden: boolean; readonly isPresent: boolean },
): unknown {
  if (definition.bulk === undefined) {
    if (isHidden) return undefined;
    return reconciler.find(run, wanted)?.object ?? (isPresent ? undefined : reconciler.lastSeen?.(run)?.object);
  }
  if (isHidden) return itemsOf([]);
  const lastSeen = isPresent ? [] : (reconciler.lastSeenItems?.(run) ?? []);
  return itemsOf([...lastSeen, ...reconciler.findItems(run)]);
}

/** Returns the items sorted by key. Later entries replace earlier ones: an existing item replaces its last state. */
function itemsOf(entries: readonly (readonly [string, Live])[]): object {
  const byKey = new Map(entries.map(([key, { object }]) => [key, object]));
  return Object.freeze(Object.fromEntries([...byKey.keys()].sort().map((key) => [key, byKey.get(key)])));
}

/** The result of a condition. `detail` is additional information that the condition returned. */
export interface ConditionOutcome<Detail = never> {
  readonly isMet: boolean;
  readonly detail?: Detail;
}

/** The types of condition details of one dependent. */
export type ConditionDetails = { readonly [Name in keyof Conditions]-?: unknown };

/** The types of condition details of a workflow, by dependent. */
interface WorkflowDetails {
  readonly [dependent: string]: ConditionDetails;
}

/** The results of the evaluated conditions of a dependent. */
export type ConditionResults<Details = ConditionDetails> = {
  readonly [Name in keyof Conditions]?: ConditionOutcome<Name extends keyof Details ? Details[Name] : never>;
};

/** What a run did with a dependent or an item of it, or why it did nothing. */
export type DependentOutcome<Details = ConditionDetails> = {
  /** Absent if no condition was evaluated. */
  readonly conditions?: ConditionResults<Details>;
  /** The outcomes of the items of a bulk dependent, by key. */
  readonly items?: { readonly [key: string]: DependentOutcome<Details> };
  /** Whether it is up to date and its readyPostcondition is met; absent if it does not exist, waits, or failed. */
  readonly isReady?: boolean;
} &
  /** `postponed`: the object differs from the desired one, and its write is postponed because of a write loop. */
  (
    | {
        readonly kind: "created" | "updated" | "unchanged";
        readonly isReady: boolean;
        readonly postponed?: PostponedWrite;
      }
    /**
     * Waits for other dependents that are not ready; an item of a bulk dependent is written as `dependent[key]`. A read-only dependent without an
     * object waits for itself. `because` describes what else it waits for, such as a watch or the end of a Job. `isHeld`: its own object is being
     * deleted, and has to be deleted first.
     */
    | { readonly kind: "waiting"; readonly for: readonly string[]; readonly because?: string; readonly isHeld?: true }
    /**
     * It must not exist, because a precondition of it or of one of its dependencies is false. `isGone`: its dependencies can be deleted. `isHeld`: a
     * finalizer or a grace period delays the deletion of its object.
     */
    | { readonly kind: "deleted"; readonly isGone: boolean; readonly isHeld?: true; readonly because: string }
    /** Its activation condition is false. */
    | { readonly kind: "inactive" }
    /** It was left: to the garbage collector during a cleanup, or because it is orphaned. */
    | { readonly kind: "left" }
    | { readonly kind: "failed"; readonly error: unknown }
  );

/** The expected type of a detail: a result of `typeof`, or a class. */
export type DetailType<Detail> = Detail extends string
  ? "string"
  : Detail extends number
    ? "number"
    : Detail extends boolean
      ? "boolean"
      : "object" | (abstract new (...args: never) => Detail);

/** Thrown if dependents failed. `errors` has their errors, for a bulk dependent those of its items; the message contains all of them. */
export class WorkflowError extends AggregateError {
  override readonly name = "WorkflowError";
  /** The errors by dependent. */
  readonly byName: ReadonlyMap<string, unknown>;

  constructor(errors: readonly unknown[], message: string, byName: ReadonlyMap<string, unknown> = new Map()) {
    super(errors, message);
    this.byName = byName;
  }
}

/** The outcomes of all dependents in one run of a workflow. `Details` has the types of their condition details. */
export interface WorkflowResult<Name extends string = string, Details = WorkflowDetails> {
  readonly dependents: {
    readonly [name in Name]: DependentOutcome<name extends keyof Details ? Details[name] : Record<never, never>>;
  };
  /** The outcomes of dependents that were removed from the workflow, and of unclaimed objects of unknown dependents; absent if there are none. */
  readonly removed?: { readonly [name: string]: DependentOutcome };
  /** Whether every dependent that should exist is up to date and ready, and all others are deleted; for a cleanup, whether all are deleted. */
  readonly isReady: boolean;
  /** The errors of failed dependents, by name. */
  readonly errors: ReadonlyMap<string, unknown>;
  /** The dependents whose objects exist as desired, ready or not, including those with a postponed write. */
  readonly reconciled: readonly Name[];
  /** The dependents that are not ready, not deleted yet, failed, waiting, or were not reached. */
  readonly notReady: readonly Name[];
  /** The dependents that are waiting. */
  readonly waiting: readonly Name[];
  /** The dependents that must not exist and whose deletion was requested, completed or not. */
  readonly deleted: readonly Name[];
  /** Those in `deleted` whose deletePostcondition is not met yet. */
  readonly remaining: readonly Name[];
  /** All errors as one, which is thrown unless `exceptions` is "result"; undefined if nothing failed. */
  readonly error: WorkflowError | undefined;
  /**
   * Returns the detail of a condition; undefined if the condition was not evaluated or returned none. Throws if the dependent or item does not exist,
   * or if the detail does not have the given `type`.
   */
  detailOf<Detail = unknown>(
    name: Name,
    condition: keyof Conditions,
    options?: DetailOptions<Detail>,
  ): Detail | undefined;
}

/** Selects the item of a detail, and checks its type. */
export interface DetailOptions<Detail> {
  /** The key of the item of a bulk dependent. */
  readonly item?: string;
  readonly type?: DetailType<Detail>;
}

/** Creates the result of a run from the outcomes of the dependents and from additional outcomes. */
export function createWorkflowResult(
  outcomes: readonly (readonly [name: string, DependentOutcome])[],
  more: Partial<Pick<WorkflowResult, "removed" | "errors" | "isReady">> = {},
): WorkflowResult {
  const { removed = {}, errors: others = [] } = more;
  const named = (holds: (outcome: DependentOutcome) => boolean) =>
    outcomes.flatMap(([name, outcome]) => (holds(outcome) ? name : []));
  const dependents = Object.fromEntries(outcomes);
  const own = outcomes.flatMap(([name, each]) => (each.kind === "failed" ? [[name, each.error] as const] : []));
  const errors = new Map([...own, ...others]);
  const notReady = named((outcome) => !isSettled(outcome));
  return {
    dependents,
    ...(Object.keys(removed).length > 0 && { removed }),
    isReady: notReady.length === 0 && more.isReady !== false,
    errors,
    reconciled: named((outcome) => "isReady" in outcome),
    notReady,
    waiting: named(({ kind }) => kind === "waiting"),
    deleted: named(({ kind }) => kind === "deleted"),
    remaining: named((outcome) => outcome.kind === "deleted" && !outcome.isGone),
    error: errors.size === 0 ? undefined : errorOf(errors, dependents),
    detailOf: (name, condition, options) => detailIn(dependents, { name, condition, ...options }),
  };
}

function errorOf(errors: WorkflowResult["errors"], dependents: WorkflowResult["dependents"]): WorkflowError {
  // One error per failed item, because some items may be worth a retry when others are not.
  const parts = [...errors].flatMap(([name, error]) => {
    const items = Object.values(dependents[name]?.items ?? {});
    const failures = items.flatMap((item) => (item.kind === "failed" ? [item.error] : []));
    return failures.length === 0 ? [error] : failures;
  });
  return new WorkflowError(parts, `the workflow failed: ${[...errors.values()].map(messageOf).join("; ")}`, errors);
}

function detailIn<Detail>(
  dependents: WorkflowResult["dependents"],
  { name, condition, item, type }: DetailOptions<Detail> & { name: string; condition: keyof Conditions },
): Detail | undefined {
  let outcome = memberOf(dependents, name);
  if (outcome === undefined)
    throw new Error(`the workflow has no dependent "${name}"; it has ${Object.keys(dependents).join(", ")}`);
  if (item !== undefined) outcome = memberOf(outcome.items ?? {}, item);
  if (outcome === undefined) throw new Error(`dependent "${name}" has no item "${item}"`);
  const detail: unknown = outcome.conditions?.[condition]?.detail;
  if (detail === undefined || type === undefined) return detail as Detail | undefined;
  const isOfType =
    typeof type === "string" ? typeof detail === type : detail instanceof (type as abstract new () => unknown);
  if (isOfType) return detail as Detail;
  const where = `the ${condition} of dependent "${name}"${item === undefined ? "" : `, item "${item}"`}`;
  const expected = typeof type === "string" ? `of type ${type}` : `a ${(type as { name: string }).name}`;
  const found = typeof detail === "object" ? JSON.stringify(detail) : `${typeof detail} ${String(detail)}`;
  throw new TypeError(`the detail of ${where} is not ${expected}: ${found}`);
}

// Criteria for the outcome of a dependent or item. A bulk dependent meets one only if all of its items do.
const DONE = {
  settled: (each: DependentOutcome) =>
    (isGone(each) && !("isHeld" in each)) || (isReady(each) && !("postponed" in each)),
  run: ({ kind }: DependentOutcome) => kind !== "failed" && kind !== "waiting",
  written: (each: DependentOutcome) => !("postponed" in each),
  cleanedUp: (each: DependentOutcome) =>
    each.kind === "left" ||
    ("isGone" in each && each.isGone && each.isHeld !== true) ||
    ("isReady" in each && Object.keys(each.items ?? {}).length > 0),
};

/** Reports whether nothing is left to do or to wait for. */
export function isSettled(outcome: DependentOutcome): boolean {
  return isAllDone(outcome, DONE.settled);
}

/** Reports whether a dependent has neither failed nor waits. */
export function hasRun(outcome: DependentOutcome): boolean {
  return isAllDone(outcome, DONE.run);
}

/** Reports whether a write of a dependent is postponed. */
export function isPostponed(outcome: DependentOutcome): boolean {
  return !isAllDone(outcome, DONE.written);
}

/** Reports whether a cleanup has nothing left to delete. */
export function isNothingLeft(outcome: DependentOutcome): boolean {
  return isAllDone(outcome, DONE.cleanedUp);
}

function isAllDone(outcome: DependentOutcome, isDone: (each: DependentOutcome) => boolean): boolean {
  const { items } = outcome;
  return isDone(outcome) && (items === undefined || Object.values(items).every((item) => isAllDone(item, isDone)));
}

/** Runs a workflow within a reconcile or cleanup. A second call of a function returns the result of the first. */
export interface WorkflowInvocation<Name extends string = string, Details = WorkflowDetails> {
  /**
   * Creates, updates, and deletes dependents according to the workflow. Throws a WorkflowError if dependents failed, unless `exceptions` is "result".
   */
  reconcile(): Promise<WorkflowResult<Name, Details>>;
  /** Deletes the dependents in reverse order, except for those that the garbage collector deletes after the primary. Throws like `reconcile`. */
  cleanup(): Promise<WorkflowResult<Name, Details>>;
}

declare const resultTypes: unique symbol;

/** A workflow with the types of its result: the names of its dependents, and their condition details. */
export interface TypedWorkflow<Name extends string = string, Details = WorkflowDetails> extends WorkflowDefinition {
  /** Never set; it only carries the types. */
  readonly [resultTypes]?: { readonly name: Name; readonly details: Details };
}

/** The controller's additional workflows, which only run when they are invoked. */
export interface OtherWorkflows {
  /**
   * Finds a workflow by its definition. The result has the names and types of its dependents. Throws if the controller does not have the workflow.
   */
  get<Name extends string = string, Details = WorkflowDetails>(
    workflow: TypedWorkflow<Name, Details>,
  ): WorkflowInvocation<Name, Details>;
  /** Finds a workflow by name. Throws if there is none with this name. */
  get(name: string): WorkflowInvocation;
}

/** The type of a condition's detail, derived from its function; `never` if it has none. */
export type DetailOf<Function> = Function extends (...args: never) => infer Result
  ? Awaited<Result> extends infer Found
    ? Found extends { readonly isMet: boolean; readonly detail: infer Detail }
      ? Detail
      : never
    : never
  : never;

/** Logs the outcome of a dependent and its evaluated conditions at debug level. */
function logOutcome(logger: Logger, dependent: string, outcome: DependentOutcome): void {
  const { kind, conditions = {}, items } = outcome;
  const asked = metConditionsOf(conditions);
  const fields = { dependent, outcome: kind, ...(asked.length > 0 && { conditions: Object.fromEntries(asked) }) };
  logger.debug(fields, `dependent "${dependent}" ${outcomeTextOf(outcome)}`);
  for (const [key, item] of Object.entries(items ?? {})) logOutcome(logger, `${dependent}[${key}]`, item);
}

function outcomeTextOf(outcome: DependentOutcome): string {
  switch (outcome.kind) {
    case "created":
    case "updated":
      return `was ${outcome.kind}${readinessTextOf(outcome)}`;
    case "unchanged":
      return outcome.postponed === undefined ? `is as desired${readinessTextOf(outcome)}` : "is postponed: write loop";
    case "waiting":
      if (outcome.because !== undefined) return `waits: ${outcome.because}`;
      return outcome.for.length === 0 ? "waits" : `waits for ${outcome.for.join(", ")}`;
    case "deleted":
      return `must not exist, because ${outcome.because}: ${outcome.isGone ? "it is deleted" : "it is being deleted"}`;
    case "inactive":
      return "is inactive: its activationCondition is false";
    case "left":
      return "is left to the garbage collector, or orphaned";
    case "failed":
      return `failed: ${messageOf(outcome.error)}`;
  }
}

function readinessTextOf({ isReady }: { readonly isReady: boolean }): string {
  return isReady ? "" : ", and not ready";
}

function metConditionsOf(conditions: ConditionResults): readonly (readonly [name: string, isMet: boolean])[] {
  return Object.entries(conditions).flatMap(([name, result]) => (result === undefined ? [] : [[name, result.isMet]]));
}
