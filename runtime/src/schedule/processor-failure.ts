import { findError, type ApiError, type RetryAfterError } from "../base/errors.js";
import { messageOf } from "../base/logger.js";
import {
  isImminent,
  resync,
  waitFor,
  type PrimaryState,
  type ProcessorEffect,
  type ProcessorEvent,
  type ProcessorSettings,
  type Transition,
} from "./processor-state.js";

// A retry that is further away than this keeps its time, however many changes fail before it (JOSDK 5.4).
const SHORT_WAIT_MS = 5_000;

/** Returns what a failed reconcile leads to; `running` is the state while it ran. */
export function afterFailure(
  running: PrimaryState,
  { outcome, now }: ProcessorEvent & { readonly kind: "finished" },
  settings: ProcessorSettings,
): Transition {
  const { error = undefined, isHandled = false } = outcome.failure ?? {};
  const state: PrimaryState = { ...running, running: "nothing" };
  const { priority, retry } = state;
  if (isImminent(running, settings)) {
    const isLast = settings.retry.isLastAttempt(retry);
    const log = logOf(error, { what: "and runs again for a new change", isHandled, isLast, isSuperseded: true });
    return { state, effects: [log, { kind: "submit", priority }] };
  }
  const giveUp = (): Transition => {
    const what = "and is not tried again before something changes";
    const next = resync(state, settings);
    return { state: next.state, effects: [logOf(error, { what, isHandled, isLast: true }), ...next.effects] };
  };
  const retryIn = (waiting: PrimaryState, retryAfterMs: number): Transition => {
    const fields = { retryAfterMs, attempt: waiting.retry?.attempt ?? 0 };
    const next = waitFor(waiting, "retry", retryAfterMs);
    return { state: next.state, effects: [logOf(error, { isHandled, isLast: false, fields }), ...next.effects] };
  };
  if (everyPart(error, (part) => findError(part, "TerminalError") !== undefined)) return giveUp();
  const retryAfter = findError<RetryAfterError>(error, "RetryAfterError");
  // A time that is none would be no pause at all.
  if (retryAfter !== undefined && isDelay(retryAfter.retryAfterMs)) return retryIn(state, retryAfter.retryAfterMs);
  const remainingMs = (retry?.dueAt ?? now) - now;
  if (remainingMs > SHORT_WAIT_MS) return retryIn(state, remainingMs);
  const next = settings.retry.next(retry, error);
  if (next === undefined) return giveUp();
  return retryIn({ ...state, retry: { ...next, dueAt: now + next.intervalMs } }, next.intervalMs);
}

function isDelay(ms: number): boolean {
  return Number.isFinite(ms) && ms >= 0;
}

interface FailureLog {
  readonly what?: string;
  readonly isHandled: boolean;
  readonly isLast: boolean;
  readonly isSuperseded?: boolean;
  readonly fields?: object;
}

// What is tried again anyway is no error yet; a conflict is nothing unusual, and what the user's own handler dealt with is told there.
function logOf(error: unknown, { what, isHandled, isLast, isSuperseded, fields = {} }: FailureLog): ProcessorEffect {
  const isConflict = everyPart(error, (part) => findError<ApiError>(part, "ApiError")?.code === 409);
  const quiet = isConflict ? "info" : isHandled ? "debug" : "warn";
  const level = !isLast ? quiet : isSuperseded === true ? "warn" : "error";
  const message = `reconcile failed${what === undefined ? "" : `, ${what}`}: ${messageOf(error)}`;
  return { kind: "log", level, message, fields };
}

// Trying again helps if any of several failures may go away.
function everyPart(error: unknown, holds: (part: unknown) => boolean): boolean {
  const parts: unknown[] = error instanceof AggregateError && error.errors.length > 0 ? error.errors : [error];
  return parts.every(holds);
}
