import { findError, isApiError } from "../../base/errors.js";
import { messageOf } from "../../base/logger.js";
import { checkControl, type ErrorArguments, type ErrorControl, type Reconciler } from "../reconciler.js";
import type { ReconcileScope } from "../../schedule/reconcile-scope.js";

/** What the user's handler made of an error. */
export interface ErrorReport {
  /** Whether it answered with a control, which says that it knows about the error. */
  readonly isHandled: boolean;
  /** False if the reconcile counts as a success. */
  readonly isRetried: boolean;
  readonly rescheduleAfterMs?: number | undefined;
}

/** What reporting an error needs. */
export interface ErrorReporting {
  readonly reconciler: Pick<Reconciler<never, never, object, object>, "updateErrorStatus"> | undefined;
  readonly args: ErrorArguments<unknown, object>;
  readonly scope: ReconcileScope;
  writeStatus(status: object): Promise<void>;
}

const RETRIED: ErrorReport = { isHandled: false, isRetried: true };

/**
 * Lets the user's reconciler report an error, and writes the status that it returns; never throws.
 *
 * A reschedule implies that there is no retry: they would be two answers to when the next reconcile comes.
 */
export async function reportError({ reconciler, args, scope, writeStatus }: ErrorReporting): Promise<ErrorReport> {
  if (reconciler?.updateErrorStatus === undefined) return RETRIED;
  let report = RETRIED;
  try {
    const returned = await scope.tasks.track("updateErrorStatus() of the reconciler", () =>
      reconciler.updateErrorStatus?.(args as never),
    );
    const control = checkControl<ErrorControl<object>>("updateErrorStatus", returned);
    if (control === undefined) return RETRIED;
    const { status, rescheduleAfterMs, withoutRetry } = control;
    report = {
      isHandled: true,
      isRetried: withoutRetry !== true && rescheduleAfterMs === undefined,
      rescheduleAfterMs,
    };
    if (status !== undefined) await writeStatus(status);
  } catch (error) {
    logFailure(error, { scope, isRetried: report.isRetried && findError(args.error, "TerminalError") === undefined });
  }
  return report;
}

// The error that was to be reported is what matters: it is logged where it is retried.
function logFailure(error: unknown, { scope, isRetried }: { scope: ReconcileScope; isRetried: boolean }): void {
  const { logger, retry } = scope;
  const message = `the status could not report the error: ${messageOf(error)}`;
  const comesAgain = scope.isNextReconcileImminent() || (isRetried && !retry.isLastAttempt);
  if (!comesAgain) return logger.error({}, message);
  if (!isApiError(error, 409) && !isApiError(error, 422)) return logger.warn({}, message);
  logger.info(
    {},
    "the status could not report the error, because the primary changed meanwhile; it is reconciled again",
  );
  logger.debug({}, message);
}
