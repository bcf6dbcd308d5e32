import type { Conditions } from "./workflow-definition.js";

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
  (
    | { readonly kind: "created" | "updated" | "unchanged"; readonly isReady: boolean }
    /** Something that it depends on is not there or not ready yet. */
    | { readonly kind: "waiting"; readonly for: readonly string[] }
    /** It must not exist: its own precondition, or that of something it depends on, does not hold. */
    | { readonly kind: "deleted"; readonly isGone: boolean; readonly because: string }
    /** Its activation condition does not hold. */
    | { readonly kind: "inactive" }
    /** It was left: to Kubernetes' garbage collector during a cleanup, or because it is to be orphaned. */
    | { readonly kind: "left" }
    | { readonly kind: "failed"; readonly error: unknown }
  );

/** What became of all the dependents in one run of a workflow; `Details` has the types of what their conditions found. */
export interface WorkflowResult<Name extends string = string, Details = WorkflowDetails> {
  readonly dependents: {
    readonly [name in Name]: DependentOutcome<name extends keyof Details ? Details[name] : Record<never, never>>;
  };
  /** Whether every dependent that should exist does, as desired and ready. */
  readonly isReady: boolean;
  /** The dependents that failed, with their errors. */
  readonly errors: ReadonlyMap<string, unknown>;
}

/** Runs the workflow of a primary, where its reconciler does that itself. */
export interface WorkflowInvocation<Name extends string = string, Details = WorkflowDetails> {
  /** Creates, updates and deletes as the workflow says; throws a WorkflowError if dependents failed, unless errors are left to the result. */
  reconcile(): Promise<WorkflowResult<Name, Details>>;
  /** Deletes what the runtime has to delete, in the order of the graph. */
  cleanup(): Promise<WorkflowResult<Name, Details>>;
}

/** What a condition finds besides whether it holds, from the type of its function; never if that is all. */
export type DetailOf<Function> = Function extends (...args: never) => infer Result
  ? Awaited<Result> extends infer Found
    ? Found extends { readonly isMet: boolean; readonly detail: infer Detail }
      ? Detail
      : never
    : never
  : never;
