import type { Conditions } from "./workflow-definition.js";

/** What the conditions of a dependent said, as far as they were asked. */
export type ConditionResults = {
  readonly [Name in keyof Conditions]?: { readonly isMet: boolean; readonly detail?: unknown };
};

interface Outcome {
  /** Absent if none was asked. */
  readonly conditions?: ConditionResults;
  /** What became of each item of a bulk dependent, by its key. */
  readonly items?: { readonly [key: string]: DependentOutcome };
}

/** What a run did with a dependent or with an item of one, or why it did nothing. */
export type DependentOutcome = Outcome &
  (
    | { readonly kind: "created" | "updated" | "unchanged"; readonly isReady: boolean }
    /** Something that it depends on is not there or not ready yet, or, as `because` says, the object itself is being deleted. */
    | { readonly kind: "waiting"; readonly for: readonly string[]; readonly because?: string }
    /** It must not exist: its own precondition, or that of something it depends on, does not hold. */
    | { readonly kind: "deleted"; readonly isGone: boolean; readonly because: string }
    /** Its activation condition does not hold. */
    | { readonly kind: "inactive" }
    /** It was left: to Kubernetes' garbage collector during a cleanup, or because it is to be orphaned. */
    | { readonly kind: "left" }
    | { readonly kind: "failed"; readonly error: unknown }
  );

/** What became of all the dependents in one run of a workflow. */
export interface WorkflowResult<Name extends string = string> {
  readonly dependents: { readonly [name in Name]: DependentOutcome };
  /** What became of what is left of dependents that the workflow no longer has, by their names; absent if nothing is. */
  readonly removed?: { readonly [name: string]: DependentOutcome };
  /** Whether every dependent that should exist does, as desired and ready. */
  readonly isReady: boolean;
  /** The dependents that failed, with their errors. */
  readonly errors: ReadonlyMap<string, unknown>;
}
