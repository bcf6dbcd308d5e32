import { isApiError } from "../base/errors.js";
import { messageOf } from "../base/logger.js";
import type { ReconcileScope } from "../schedule/reconcile-scope.js";
import type { ErrorControl } from "./reconciler.js";

/** Tells whether an error is retried. A reschedule implies no retry: they would be two answers to when the next reconcile comes. */
export function isRetried(control: ErrorControl<object> | undefined): boolean {
  return control?.withoutRetry !== true && control?.rescheduleAfterMs === undefined;
}

/** Logs that a status could not report an error. The error that was to be reported is what matters: it is logged where it is retried. */
export function logUnreported(problem: unknown, scope: ReconcileScope, isRetried: boolean): void {
  const { logger, retry } = scope;
  const what = "the status could not report the error";
  const message = `${what}: ${messageOf(problem)}`;
  const comesAgain = scope.isNextReconcileImminent() || (isRetried && !retry.isLastAttempt);
  if (!comesAgain) return logger.error({}, message);
  if (!isApiError(problem, 409) && !isApiError(problem, 422)) return logger.warn({}, message);
  logger.info({}, `${what}, because the primary changed meanwhile; it is reconciled again`);
  logger.debug({}, message);
}
