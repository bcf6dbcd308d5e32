import { findError, isNamespaceTerminating, stackOf, type ApiError, type RetryAfterError } from "../base/errors.js";
import { messageOf } from "../base/logger.js";
import {
  isImminent,
  logOf,
  resync,
  runAgainAfter,
  waitFor,
  withLog,
  type PrimaryState,
  type ProcessorEffect,
  type ProcessorEvent,
  type ProcessorSettings,
  type Transition,
} from "./processor-state.js";
import { partsOf } from "./retry.js";

// A retry that is further away than this keeps its time, however many changes fail before it (JOSDK 5.4).
const SHORT_WAIT_MS = 5_000;
// The pause for events that are no edits. It is longer than any interval of the default retry.
const FIRST_HOLD_MS = 3_000;
const HOLD_FACTOR = 1.5;
const LONGEST_HOLD_MS = 15_000;

/** Returns what a failed reconcile leads to; `running` is the state while it ran. */
export function afterFailure(
  running: PrimaryState,
  { outcome, isEnded, now }: ProcessorEvent & { readonly kind: "finished" },
  settings: ProcessorSettings,
): Transition {
  const { error = undefined, isHandled = false } = outcome.failure ?? {};
  const { retry } = running;
  const isPending = isImminent(running, settings);
  if (isPending && running.isEdited) {
    const state: PrimaryState = { ...running, running: "nothing" };
    const last = settings.retry.isLastAttempt(retry) ? "warn" : undefined;
    const log = isEnded
      ? logOf("debug", `the reconcile was ended early: ${messageOf(error)}`)
      : failureLog(error, { what: "and runs again for a new change", isHandled, last });
    return { state, effects: [log, { kind: "submit" }] };
  }
  const failures = running.failures + 1;
  const holdMs = Math.min(FIRST_HOLD_MS * HOLD_FACTOR ** (failures - 1), LONGEST_HOLD_MS);
  const state: PrimaryState = { ...running, running: "nothing", failures, isGivenUp: false, heldUntil: now + holdMs };
  const giveUp = (): Transition => {
    const what = "and is not tried again before something changes";
    const log = failureLog(error, { what, isHandled, last: "error" });
    const given: PrimaryState = { ...state, isGivenUp: true };
    return withLog(isPending ? waitFor(given, "hold", holdMs) : resync(given, settings), log);
  };
  const retryIn = (waiting: PrimaryState, retryAfterMs: number): Transition => {
    const fields = { retryAfterMs, attempt: waiting.retry?.attempt ?? 0 };
    const slow = { what: "and is tried again less and less often", last: "error" } as const;
    const isHeld = isPending && holdMs < retryAfterMs;
    const next = isHeld ? waitFor(waiting, "hold", holdMs) : runAgainAfter(waiting, "retry", retryAfterMs);
    return withLog(next, failureLog(error, { ...(waiting.isGivenUp && slow), isHandled, fields }));
  };
  if (partsOf(error).every((part) => findError(part, "TerminalError") !== undefined)) return giveUp();
  const askedMs = findError<RetryAfterError>(error, "RetryAfterError")?.retryAfterMs ?? NaN;
  // NaN or a negative number would be no pause at all.
  if (Number.isFinite(askedMs) && askedMs >= 0) return retryIn(state, askedMs);
  const remainingMs = (retry?.dueAt ?? now) - now;
  if (remainingMs > SHORT_WAIT_MS) return retryIn({ ...state, isGivenUp: running.isGivenUp }, remainingMs);
  const next = settings.retry.next(retry, error);
  if (next === undefined) return giveUp();
  const { isSlow = false } = next;
  // A longest interval that is shorter goes on.
  const delayMs = isSlow ? Math.min(next.intervalMs, settings.resyncAfterMs ?? Infinity) : next.intervalMs;
  return retryIn(
    { ...state, isGivenUp: isSlow && !isEnding(error), retry: { ...next, dueAt: now + delayMs } },
    delayMs,
  );
}

/** Tells whether a reconcile failed only because objects cannot be created in a namespace that is being deleted. */
export function isEnding(error: unknown): boolean {
  return partsOf(error).every(isNamespaceTerminating);
}

/** Returns when the next attempt is made after a failure with these effects; `undefined` if there is none. */
export function retryAfterMsOf(effects: readonly ProcessorEffect[]): number | undefined {
  const next = effects.find(({ kind }) => kind === "release" || kind === "submit" || kind === "schedule");
  if (next?.kind === "submit") return 0;
  return next?.kind === "schedule" ? next.delayMs : undefined;
}

interface FailureLog {
  readonly what?: string;
  readonly isHandled: boolean;
  /** The level if no quick retry is left; absent if one is. */
  readonly last?: "warn" | "error" | undefined;
  readonly fields?: object;
}

// A failure with retries left is no error yet, a conflict is normal, and the user's handler reports what it handled.
function failureLog(error: unknown, { what, isHandled, last, fields = {} }: FailureLog): ProcessorEffect {
  const isConflict = partsOf(error).every((part) => findError<ApiError>(part, "ApiError")?.code === 409);
  const level = isEnding(error) ? "info" : (last ?? (isConflict ? "info" : isHandled ? "debug" : "warn"));
  const message = `reconcile failed${what === undefined ? "" : `, ${what}`}: ${messageOf(error)}`;
  const stack = stackOf(error);
  return logOf(level, message, stack === undefined ? fields : { ...fields, stack });
}
