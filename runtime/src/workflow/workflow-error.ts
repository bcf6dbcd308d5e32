import { messageOf } from "../base/logger.js";
import type { WorkflowResult } from "./workflow-result.js";

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

/** Creates the error of a run from what failed in it. */
export function createWorkflowError({
  errors,
  dependents,
}: Pick<WorkflowResult, "errors" | "dependents">): WorkflowError {
  // Each failed item is a part of its own: what fails for good in one may go away in another.
  const parts = [...errors].flatMap(([name, error]) => {
    const items = Object.values(dependents[name]?.items ?? {});
    const failures = items.flatMap((item) => (item.kind === "failed" ? [item.error] : []));
    return failures.length === 0 ? [error] : failures;
  });
  return new WorkflowError(parts, `the workflow failed: ${[...errors.values()].map(messageOf).join("; ")}`, errors);
}

/** Creates the error of a dependent, which names it, and of a bulk dependent the item. */
export function createDependentError(name: string, error: unknown, item?: string): Error {
  const which = item === undefined ? "" : `, item "${item}"`;
  return new Error(`dependent "${name}"${which}: ${messageOf(error)}`, { cause: error });
}
