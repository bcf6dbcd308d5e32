import type { DependentOutcome, ReconcileEvent } from "@gen-operator/runtime";

/** What became of a dependent, in words. */
export interface DependentReport {
  readonly name: string;
  readonly state: string;
  /** Why nothing became of it; empty where there is nothing to say. */
  readonly why: string;
}

/** What became of a primary and of its nodes, as it is sent from one process to another. */
export interface PrimaryReport {
  readonly controller: string;
  /** `namespace/name`, or `name` if it is cluster-scoped. */
  readonly primary: string;
  readonly state: string;
  /** Why the reconcile failed. */
  readonly error?: string;
  readonly dependents: readonly DependentReport[];
}

/** Describes what a reconcile did. */
export function reportOf({ controller, primary, kind, workflow, error }: ReconcileEvent): PrimaryReport {
  const outcomes = Object.entries({ ...workflow?.dependents, ...workflow?.removed });
  const dependents = outcomes.map(([name, outcome]) => ({ name, ...describeOutcome(outcome) }));
  const named = { controller, primary: primary.replace(/^\//, ""), dependents };
  if (error !== undefined) return { ...named, state: "failed", error: textOf(error) };
  if (kind === "cleanup") return { ...named, state: "going" };
  return { ...named, state: workflow === undefined ? "reconciled" : workflow.isReady ? "ready" : "not ready" };
}

/** Says what became of a dependent, and why nothing did. */
export function describeOutcome(outcome: DependentOutcome): Omit<DependentReport, "name"> {
  const items = outcome.items === undefined ? "" : `${Object.keys(outcome.items).length} items`;
  switch (outcome.kind) {
    case "created":
    case "updated":
      return { state: outcome.kind, why: outcome.isReady ? items : "not ready yet" };
    case "unchanged":
      return outcome.isReady ? { state: "ready", why: items } : { state: "as desired", why: "not ready yet" };
    case "waiting":
      return { state: "waiting", why: waitsFor(outcome) };
    case "deleted":
      return { state: outcome.isGone ? "absent" : "going", why: outcome.because };
    case "inactive":
      return { state: "inactive", why: "its activationCondition is false" };
    case "left":
      return { state: "left", why: "to the garbage collector" };
    case "failed":
      return { state: "failed", why: textOf(outcome.error) };
  }
}

function waitsFor({ for: blockers, because }: Extract<DependentOutcome, { kind: "waiting" }>): string {
  const causes = [
    ...(blockers.length > 0 ? [`for ${blockers.join(", ")}`] : []),
    ...(because === undefined ? [] : [because]),
  ];
  return causes.join("; ");
}

// One line: a table has no room for more.
function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, " ");
}
