import { messageOf } from "../base/logger.js";
import type { WorkflowResult } from "./workflow-result.js";

// What else failed can be read in the result; a message has to fit into a status.
const MOST_ITEMS = 5;

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

/** Creates the error of a bulk dependent from those of its items, of which there is one at least. */
export function createBulkError(name: string, errors: readonly unknown[]): AggregateError {
  const messages = errors.slice(0, MOST_ITEMS).map(messageOf);
  if (errors.length > MOST_ITEMS) messages.push(`${errors.length - MOST_ITEMS} more items of dependent "${name}"`);
  return new AggregateError(errors, messages.join("; "));
}
