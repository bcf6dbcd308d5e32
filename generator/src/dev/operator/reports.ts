import type { DependentOutcome, ReconcileEvent } from "@gen-operator/runtime";

/** State of a dependent after a reconcile, as readable text. */
export interface DependentReport {
  readonly name: string;
  readonly state: string;
  /** Reason for the state; empty if there is none. */
  readonly why: string;
}

/** State of a primary and its dependents after a reconcile, sent between processes. */
export interface PrimaryReport {
  readonly controller: string;
  /** `namespace/name`, or `name` for a cluster-scoped primary. */
  readonly primary: string;
  readonly state: string;
  /** Message of the error with which the reconcile failed. */
  readonly error?: string;
  readonly dependents: readonly DependentReport[];
}

/** Describes the result of a reconcile. */
export function reportOf({ controller, primary, kind, workflow, error }: ReconcileEvent): PrimaryReport {
  const outcomes = Object.entries({ ...workflow?.dependents, ...workflow?.removed });
  const dependents = outcomes.map(([name, outcome]) => ({ name, ...describeOutcome(outcome) }));
  const named = { controller, primary: primary.replace(/^\//, ""), dependents };
  if (error !== undefined) return { ...named, state: "failed", error: textOf(error) };
  if (kind === "cleanup") return { ...named, state: "deleting" };
  return { ...named, state: workflow === undefined ? "reconciled" : workflow.isReady ? "ready" : "not ready" };
}

/** Describes the result of a dependent. */
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
      return { state: outcome.isGone ? "absent" : "deleting", why: outcome.because };
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

// A table row has a single line.
function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, " ");
}
