import { findError, isApiError } from "../../base/errors.js";
import { messageOf } from "../../base/logger.js";
import type { ControllerDefinition } from "../controller-definition.js";
import { checkControl, type ErrorArguments, type ErrorControl } from "../reconciler.js";
import type { ReconcileScope } from "../../schedule/reconcile-scope.js";

interface ErrorReporting {
  readonly reconciler: ControllerDefinition["reconciler"];
  readonly args: ErrorArguments<unknown, object>;
  readonly scope: ReconcileScope;
  writeStatus(status: object): Promise<void>;
}

/**
 * Lets the user's reconciler report an error, and writes the status that it returns; never throws. Returns its control, which says that it
 * knows about the error.
 */
export async function reportError(reporting: ErrorReporting): Promise<ErrorControl<object> | undefined> {
  const { reconciler, args, scope, writeStatus } = reporting;
  if (reconciler?.updateErrorStatus === undefined) return undefined;
  let control: ErrorControl<object> | undefined;
  try {
    const returned = await scope.tasks.track("updateErrorStatus() of the reconciler", () =>
      reconciler.updateErrorStatus?.(args as never),
    );
    control = checkControl<ErrorControl<object>>("updateErrorStatus", returned);
    if (control?.status !== undefined) await writeStatus(control.status);
  } catch (error) {
    logFailure(error, scope, isRetried(control) && findError(args.error, "TerminalError") === undefined);
  }
  return control;
}

/** Tells whether a reconcile that failed is tried again. A reschedule implies no retry: they would be two answers to when the next one comes. */
export function isRetried(control: ErrorControl<object> | undefined): boolean {
  return control?.withoutRetry !== true && control?.rescheduleAfterMs === undefined;
}

// The error that was to be reported is what matters: it is logged where it is retried.
function logFailure(error: unknown, scope: ReconcileScope, isRetried: boolean): void {
  const { logger, retry } = scope;
  const what = "the status could not report the error";
  const message = `${what}: ${messageOf(error)}`;
  const comesAgain = scope.isNextReconcileImminent() || (isRetried && !retry.isLastAttempt);
  if (!comesAgain) return logger.error({}, message);
  if (!isApiError(error, 409) && !isApiError(error, 422)) return logger.warn({}, message);
  logger.info({}, `${what}, because the primary changed meanwhile; it is reconciled again`);
  logger.debug({}, message);
}
