import type { PostponedWrite } from "../base/activity.js";
import { memberOf } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import { isGone, isReady } from "./plan.js";
import type { Conditions, WorkflowDefinition } from "./workflow-definition.js";

/** What one condition said; `detail` is what it found besides whether it holds. */
export interface ConditionOutcome<Detail = never> {
  readonly isMet: boolean;
  readonly detail?: Detail;
}

/** The types of the details of the conditions of one dependent. */
export type ConditionDetails = { readonly [Name in keyof Conditions]-?: unknown };

/** The types of the details of the conditions of a workflow, by the name of the dependent. */
interface WorkflowDetails {
  readonly [dependent: string]: ConditionDetails;
}

/** The results of the conditions of a dependent that were asked. */
export type ConditionResults<Details = ConditionDetails> = {
  readonly [Name in keyof Conditions]?: ConditionOutcome<Name extends keyof Details ? Details[Name] : never>;
};

/** What a run did with a dependent or with an item of one, or why it did nothing. */
export type DependentOutcome<Details = ConditionDetails> = {
  /** Absent if none was asked. */
  readonly conditions?: ConditionResults<Details>;
  /** What became of each item of a bulk dependent, by its key. */
  readonly items?: { readonly [key: string]: DependentOutcome<Details> };
  /** Whether it is as desired and its readyPostcondition holds; absent if it does not exist, waits or failed. */
  readonly isReady?: boolean;
} &
  /** `postponed`: it is not as desired, and is left so for a while because it is written over and over. */
  (
    | {
        readonly kind: "created" | "updated" | "unchanged";
        readonly isReady: boolean;
        readonly postponed?: PostponedWrite;
      }
    /**
     * Other dependents are not ready yet; an item of a bulk dependent is named `dependent[key]`. A read-only dependent without an object waits
     * for itself. `because` says what else it waits for, such as a watch or the end of a Job; `isHeld`: its own object is being deleted, and has to be
     * gone first.
     */
    | { readonly kind: "waiting"; readonly for: readonly string[]; readonly because?: string; readonly isHeld?: true }
    /**
     * It must not exist: its own precondition, or that of something it depends on, does not hold. `isGone`: what it depends on can be deleted.
     * `isHeld`: a finalizer or a grace period keeps its object for now.
     */
    | { readonly kind: "deleted"; readonly isGone: boolean; readonly isHeld?: true; readonly because: string }
    /** Its activation condition does not hold. */
    | { readonly kind: "inactive" }
    /** It was left: to Kubernetes' garbage collector during a cleanup, or because it is to be orphaned. */
    | { readonly kind: "left" }
    | { readonly kind: "failed"; readonly error: unknown }
  );

/** The expected type of a detail: the answer of `typeof`, or a class. */
export type DetailType<Detail> = Detail extends string
  ? "string"
  : Detail extends number
    ? "number"
    : Detail extends boolean
      ? "boolean"
      : "object" | (abstract new (...args: never) => Detail);

/** Thrown when dependents failed. Its parts are their errors, of a bulk dependent those of its items; the message has them all. */
export class WorkflowError extends AggregateError {
  override readonly name = "WorkflowError";
  /** The errors by the names of the dependents. */
  readonly byName: ReadonlyMap<string, unknown>;

  constructor(errors: readonly unknown[], message: string, byName: ReadonlyMap<string, unknown> = new Map()) {
    super(errors, message);
    this.byName = byName;
  }
}

/** What became of all dependents in one run of a workflow; `Details` has the types of what their conditions found. */
export interface WorkflowResult<Name extends string = string, Details = WorkflowDetails> {
  readonly dependents: {
    readonly [name in Name]: DependentOutcome<name extends keyof Details ? Details[name] : Record<never, never>>;
  };
  /** What became of the dependents that the workflow no longer has; absent if nothing is left of them. */
  readonly removed?: { readonly [name: string]: DependentOutcome };
  /** Whether every dependent that should exist is as desired and ready, and every other is gone; of a cleanup, whether all are gone. */
  readonly isReady: boolean;
  /** The errors of the dependents that failed. */
  readonly errors: ReadonlyMap<string, unknown>;
  /** The dependents that are as desired now, ready or not. */
  readonly reconciled: readonly Name[];
  /** The dependents that are not ready or not gone, failed, wait, or were never reached. */
  readonly notReady: readonly Name[];
  /** The dependents that something holds back. */
  readonly waiting: readonly Name[];
  /** The dependents that must not exist and were deleted, gone or not. */
  readonly deleted: readonly Name[];
  /** Those of `deleted` whose deletePostcondition does not hold yet. */
  readonly remaining: readonly Name[];
  /** All errors in one, as it is thrown unless `exceptions` is "result"; undefined if nothing failed. */
  readonly error: WorkflowError | undefined;
  /**
   * Returns the detail of a condition; undefined if it was not asked, or gave none. Throws if there is no such dependent or item, and if the
   * detail is not of the `type` that is given.
   */
  detailOf<Detail = unknown>(
    name: Name,
    condition: keyof Conditions,
    options?: DetailOptions<Detail>,
  ): Detail | undefined;
}

/** The item of a detail, and the type that it should have. */
export interface DetailOptions<Detail> {
  /** The key of the item of a bulk dependent. */
  readonly item?: string;
  readonly type?: DetailType<Detail>;
}

/** Creates the result of a run from what became of each dependent, and of things besides. */
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
  // Each failed item is a part of its own: what fails for good in one may go away in another.
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

// What counts as done, of a dependent or of one item; a bulk dependent is done when all of its items are as well.
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

/** Tells whether nothing is left to do or to wait for. */
export function isSettled(outcome: DependentOutcome): boolean {
  return isAllDone(outcome, DONE.settled);
}

/** Tells whether a dependent has neither failed nor waits. */
export function hasRun(outcome: DependentOutcome): boolean {
  return isAllDone(outcome, DONE.run);
}

/** Tells whether a write of a dependent is postponed. */
export function isPostponed(outcome: DependentOutcome): boolean {
  return !isAllDone(outcome, DONE.written);
}

/** Tells whether a cleanup has nothing left to delete. */
export function isNothingLeft(outcome: DependentOutcome): boolean {
  return isAllDone(outcome, DONE.cleanedUp);
}

function isAllDone(outcome: DependentOutcome, isDone: (each: DependentOutcome) => boolean): boolean {
  const { items } = outcome;
  return isDone(outcome) && (items === undefined || Object.values(items).every((item) => isAllDone(item, isDone)));
}

/** Runs a workflow from within a reconcile or a cleanup, in which a second call of a function returns the result of the first. */
export interface WorkflowInvocation<Name extends string = string, Details = WorkflowDetails> {
  /** Creates, updates and deletes as the workflow says; throws a WorkflowError if dependents failed, unless `exceptions` is "result". */
  reconcile(): Promise<WorkflowResult<Name, Details>>;
  /** Deletes the dependents in reverse order, but for what the garbage collector deletes after the primary; throws as `reconcile` does. */
  cleanup(): Promise<WorkflowResult<Name, Details>>;
}

declare const resultTypes: unique symbol;

/** A workflow with the types of its result: the names of its dependents, and the details of their conditions. */
export interface TypedWorkflow<Name extends string = string, Details = WorkflowDetails> extends WorkflowDefinition {
  /** Never set: it only carries the types. */
  readonly [resultTypes]?: { readonly name: Name; readonly details: Details };
}

/** The workflows of a controller besides its own, of which none runs by itself. */
export interface OtherWorkflows {
  /** Finds a workflow by its definition; the result has the names and types of its dependents. Throws if the controller was not given it. */
  get<Name extends string = string, Details = WorkflowDetails>(
    workflow: TypedWorkflow<Name, Details>,
  ): WorkflowInvocation<Name, Details>;
  /** Finds a workflow by its name; throws if the controller has none of this name. */
  get(name: string): WorkflowInvocation;
}

/** What a condition finds besides whether it holds, from the type of its function; never if that is all. */
export type DetailOf<Function> = Function extends (...args: never) => infer Result
  ? Awaited<Result> extends infer Found
    ? Found extends { readonly isMet: boolean; readonly detail: infer Detail }
      ? Detail
      : never
    : never
  : never;

/** Writes what a run did with a dependent, and which conditions it asked, at level debug. */
export function logOutcome(logger: Logger, dependent: string, outcome: DependentOutcome): void {
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
