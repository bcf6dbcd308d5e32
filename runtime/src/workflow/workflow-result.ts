import type { PostponedWrite } from "../write/send/postponed-write.js";
import { createWorkflowError, type WorkflowError } from "./workflow-error.js";
import type { Conditions, WorkflowDefinition } from "./definition/workflow-definition.js";

/** What one condition said; `detail` is what it found besides whether it holds. */
export interface ConditionOutcome<Detail = never> {
  readonly isMet: boolean;
  readonly detail?: Detail;
}

/** The types of the details of the conditions of one dependent, by the name of the condition. */
export type ConditionDetails = { readonly [Name in keyof Conditions]-?: unknown };

/** The types of the details of the conditions of a workflow, by the name of the dependent. */
export interface WorkflowDetails {
  readonly [dependent: string]: ConditionDetails;
}

/** What the conditions of a dependent said, as far as they were asked. */
export type ConditionResults<Details = ConditionDetails> = {
  readonly [Name in keyof Conditions]?: ConditionOutcome<Name extends keyof Details ? Details[Name] : never>;
};

interface Outcome<Details> {
  /** Absent if none was asked. */
  readonly conditions?: ConditionResults<Details>;
  /** What became of each item of a bulk dependent, by its key. */
  readonly items?: { readonly [key: string]: DependentOutcome<Details> };
}

/** What a run did with a dependent or with an item of one, or why it did nothing. */
export type DependentOutcome<Details = ConditionDetails> = Outcome<Details> &
  /** `postponed`: it is not as desired, and is left so for a while because it is written over and over. */
  (
    | {
        readonly kind: "created" | "updated" | "unchanged";
        readonly isReady: boolean;
        readonly postponed?: PostponedWrite;
      }
    /**
     * Something that it depends on is not there or not ready yet; an item of a bulk dependent is named `dependent[key]`. What is only read
     * and does not exist waits for itself. `because` says it of what waits for its own object to be gone.
     */
    | { readonly kind: "waiting"; readonly for: readonly string[]; readonly because?: string }
    /** It must not exist: its own precondition, or that of something it depends on, does not hold. */
    | { readonly kind: "deleted"; readonly isGone: boolean; readonly because: string }
    /** Its activation condition does not hold. */
    | { readonly kind: "inactive" }
    /** It was left: to Kubernetes' garbage collector during a cleanup, or because it is to be orphaned. */
    | { readonly kind: "left" }
    | { readonly kind: "failed"; readonly error: unknown }
  );

/** What the detail of a condition is checked against: what `typeof` says of it, or its class. */
export type DetailType<Detail> = Detail extends string
  ? "string"
  : Detail extends number
    ? "number"
    : Detail extends boolean
      ? "boolean"
      : "object" | (abstract new (...args: never) => Detail);

/** What became of all the dependents in one run of a workflow; `Details` has the types of what their conditions found. */
export interface WorkflowResult<Name extends string = string, Details = WorkflowDetails> {
  readonly dependents: {
    readonly [name in Name]: DependentOutcome<name extends keyof Details ? Details[name] : Record<never, never>>;
  };
  /** What became of what is left of dependents that the workflow no longer has, by their names; absent if nothing is. */
  readonly removed?: { readonly [name: string]: DependentOutcome };
  /** Whether every dependent that should exist does, as desired and ready, and every other is gone; of a cleanup, whether all are gone. */
  readonly isReady: boolean;
  /** The dependents that failed, with their errors. */
  readonly errors: ReadonlyMap<string, unknown>;
  /** The dependents that are as desired now, ready or not. */
  readonly reconciled: readonly Name[];
  /** Why `isReady` is not true: what is not ready or not gone, failed, waits, or was never reached. */
  readonly notReady: readonly Name[];
  /** The dependents that something holds back. */
  readonly waiting: readonly Name[];
  /** The dependents that must not exist and were asked to go, gone or not. */
  readonly deleted: readonly Name[];
  /** Those of `deleted` whose deletePostcondition does not hold yet. */
  readonly remaining: readonly Name[];
  /** All errors in one, as it is thrown where `exceptions` is not "result"; undefined if nothing failed. */
  readonly error: WorkflowError | undefined;
  /**
   * Returns what a condition gave as its detail; undefined if it was not asked, or gave none. Throws if there is no such dependent or item,
   * and if `type` is given and the detail is something else.
   */
  detailOf<Detail = unknown>(
    name: Name,
    condition: keyof Conditions,
    options?: DetailOptions<Detail>,
  ): Detail | undefined;
}

/** Which detail is meant, and what it should be. */
export interface DetailOptions<Detail> {
  /** The key of the item of a bulk dependent. */
  readonly item?: string;
  readonly type?: DetailType<Detail>;
}

/** Creates the result of a run from what became of each dependent. */
export function createWorkflowResult(outcomes: readonly (readonly [name: string, DependentOutcome])[]): WorkflowResult {
  const errors = outcomes.flatMap(([name, each]) => (each.kind === "failed" ? [[name, each.error] as const] : []));
  const isReady = outcomes.every(([, outcome]) => isSettled(outcome));
  return new RunResult({ dependents: Object.fromEntries(outcomes), errors: new Map(errors), isReady });
}

/** What became of things besides the dependents. */
export interface ResultAddition {
  readonly removed?: { readonly [name: string]: DependentOutcome };
  /** More errors, by names. */
  readonly errors: ReadonlyMap<string, unknown>;
  readonly isReady: boolean;
}

/** Returns a result with what became of things besides the dependents. */
export function withAddition(result: WorkflowResult, { removed, errors, isReady }: ResultAddition): WorkflowResult {
  return new RunResult({
    dependents: result.dependents,
    errors: new Map([...result.errors, ...errors]),
    isReady: result.isReady && isReady,
    ...(removed === undefined ? {} : { removed }),
  });
}

type ResultFacts = Pick<WorkflowResult, "dependents" | "errors" | "isReady" | "removed">;

class RunResult implements WorkflowResult {
  readonly dependents: { readonly [name: string]: DependentOutcome };
  readonly removed?: { readonly [name: string]: DependentOutcome };
  readonly isReady: boolean;
  readonly errors: ReadonlyMap<string, unknown>;

  constructor({ dependents, errors, isReady, removed }: ResultFacts) {
    this.dependents = dependents;
    this.errors = errors;
    this.isReady = isReady;
    if (removed !== undefined) this.removed = removed;
  }

  get reconciled(): readonly string[] {
    return this.#named(({ kind }) => kind === "created" || kind === "updated" || kind === "unchanged");
  }

  get notReady(): readonly string[] {
    return this.#named((outcome) => !isSettled(outcome));
  }

  get waiting(): readonly string[] {
    return this.#named(({ kind }) => kind === "waiting");
  }

  get deleted(): readonly string[] {
    return this.#named(({ kind }) => kind === "deleted");
  }

  get remaining(): readonly string[] {
    return this.#named((outcome) => outcome.kind === "deleted" && !outcome.isGone);
  }

  get error(): WorkflowError | undefined {
    return this.errors.size === 0 ? undefined : createWorkflowError(this);
  }

  detailOf<Detail>(
    name: string,
    condition: keyof Conditions,
    { item, type }: DetailOptions<Detail> = {},
  ): Detail | undefined {
    const detail = this.#outcomeOf(name, item).conditions?.[condition]?.detail;
    if (detail === undefined || type === undefined || isOfType(detail, type)) return detail as Detail | undefined;
    const where = `the ${condition} of dependent "${name}"${item === undefined ? "" : `, item "${item}"`}`;
    const expected = typeof type === "string" ? `of type ${type}` : `a ${(type as { name: string }).name}`;
    throw new TypeError(`the detail of ${where} is not ${expected}: ${describe(detail)}`);
  }

  #outcomeOf(name: string, item: string | undefined): DependentOutcome {
    const outcome = ownOf(this.dependents, name);
    if (outcome === undefined)
      throw new Error(`the workflow has no dependent "${name}"; it has ${Object.keys(this.dependents).join(", ")}`);
    if (item === undefined) return outcome;
    const found = ownOf(outcome.items ?? {}, item);
    if (found === undefined) throw new Error(`dependent "${name}" has no item "${item}"`);
    return found;
  }

  #named(holds: (outcome: DependentOutcome) => boolean): string[] {
    return Object.keys(this.dependents).filter((name) => holds(this.dependents[name]!));
  }
}

/** Tells whether nothing is left to do or to wait for: what must not exist does not keep a workflow from being ready, once it is gone. */
function isSettled(outcome: DependentOutcome): boolean {
  const { kind, items } = outcome;
  const isDone =
    "isReady" in outcome
      ? outcome.isReady && outcome.postponed === undefined
      : kind === "deleted"
        ? outcome.isGone
        : kind === "inactive" || kind === "left";
  return isDone && (items === undefined || Object.values(items).every(isSettled));
}

function isOfType(detail: unknown, type: unknown): boolean {
  return typeof type === "string" ? typeof detail === type : detail instanceof (type as abstract new () => unknown);
}

function describe(detail: unknown): string {
  return typeof detail === "object" ? JSON.stringify(detail) : `${typeof detail} ${String(detail)}`;
}

function ownOf<Value>(record: { readonly [key: string]: Value }, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/**
 * Runs a workflow from within a reconcile or a cleanup. In one of them each function does its work once: a second call returns what the first
 * did.
 */
export interface WorkflowInvocation<Name extends string = string, Details = WorkflowDetails> {
  /** Creates, updates and deletes as the workflow says; throws a WorkflowError if dependents failed, unless errors are left to the result. */
  reconcile(): Promise<WorkflowResult<Name, Details>>;
  /**
   * Deletes what the runtime has to delete, in reverse order; throws as `reconcile` does. What Kubernetes collects is left to that if the
   * primary is being deleted.
   */
  cleanup(): Promise<WorkflowResult<Name, Details>>;
}

declare const resultTypes: unique symbol;

/** A workflow of which the compiler knows what is in its result: the names of its dependents, and what their conditions find. */
export interface TypedWorkflow<Name extends string = string, Details = WorkflowDetails> extends WorkflowDefinition {
  /** Never set: it only carries the types. */
  readonly [resultTypes]?: { readonly name: Name; readonly details: Details };
}

/** The workflows of a controller besides its own, of which none runs by itself. */
export interface OtherWorkflows {
  /** Finds one as it was given to the controller: its result has the names and types of its dependents. Throws if it was not given. */
  get<Name extends string = string, Details = WorkflowDetails>(
    workflow: TypedWorkflow<Name, Details>,
  ): WorkflowInvocation<Name, Details>;
  /** Finds one by its name; throws if there is none. */
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
