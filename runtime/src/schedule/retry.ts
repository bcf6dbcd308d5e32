import { requireNumbers } from "../base/checks.js";
import { findError, isAbsent, isMendedElsewhere, type ApiError } from "../base/errors.js";
import { messageOf, type Logger } from "../base/logger.js";
import { synchronous } from "../base/promises.js";
import { userCalls } from "../base/user-calls.js";

/**
 * How often and when a failed reconcile is tried again; the defaults are those of JOSDK's GenericRetry. Every interval gets longer at random.
 *
 * No interval is shorter than what the API server asks for (Retry-After). After the last attempt retries go on slowly, after 1 minute at first and 10 in the end. While the API server
 * cannot be reached, rejects the credentials or takes no requests, they go on at the last quick interval; while it does not serve the kind, every minute.
 * What another client or a person has to mend (an object in the way, a namespace that is missing or being deleted) is looked at again after 10 s,
 * doubling to 60 s.
 */
export interface RetryOptions {
  /** Quick retries after the first failure; -1 for no end, 0 for no retries at all. Default: 5 */
  readonly maxRetries?: number;
  /** Default: 2000 */
  readonly initialIntervalMs?: number;
  /** Default: 1.5 */
  readonly multiplier?: number;
  /** Caps the interval; -1 for no cap. Default: 15187.5, or the initial interval if that is longer */
  readonly maxIntervalMs?: number;
  /** By which part of itself an interval gets longer at most, at random: 0 to 1. Default: 0.2 */
  readonly jitter?: number;
}

/** Where the retries of one primary stand; made afresh after every success. */
export interface RetryState {
  /** Retries that were granted so far. */
  readonly attempt: number;
  /** How long the last granted retry waits. */
  readonly intervalMs: number;
  /** Whether the quick attempts are used up, so that health shows the primary as given up. Default: false */
  readonly isSlow?: boolean;
}

/** Decides whether and when a failed reconcile is tried again; for anything that growing intervals do not cover, write your own. */
export interface Retry {
  /**
   * Returns the state after one more failure, whose `intervalMs` is the time to wait; undefined when no retry is left. `state` is what it
   * returned for this primary before; undefined for the first failure since a success.
   */
  next(state: RetryState | undefined, error: unknown): RetryState | undefined;
  /** Tells whether no quick retry is left after the attempt that `state` stands for. */
  isLastAttempt(state: RetryState | undefined): boolean;
}

const LONGEST_QUICK_MS = 2000 * 1.5 ** 5;
const FIRST_SLOW_MS = 60_000;
const LONGEST_SLOW_MS = 600_000;
// For what is mended elsewhere: nothing tells when, and a look costs one request.
const FIRST_LOOK_MS = 10_000;
const LONGEST_LOOK_MS = 60_000;

/** Creates the retry of these options: the first two wait the initial interval, later ones grow (JOSDK GenericRetryExecution). */
export function createRetry(options: RetryOptions = {}, random: () => number = Math.random): Retry {
  // By the jitter, thousands of primaries that failed at once, because a webhook was down, do not come back at once.
  const { maxRetries = 5, initialIntervalMs = 2000, multiplier = 1.5, jitter = 0.2 } = options;
  const { maxIntervalMs = Math.max(LONGEST_QUICK_MS, initialIntervalMs) } = options;
  const isLastAttempt = (state: RetryState | undefined) => maxRetries >= 0 && (state?.attempt ?? 0) >= maxRetries;
  const jittered = (intervalMs: number, error: unknown) =>
    Math.max(intervalMs, Math.min(askedMs(error), LONGEST_SLOW_MS)) * (1 + jitter * random());
  const quickMs = (attempt: number) => {
    const grown = initialIntervalMs * multiplier ** Math.max(0, attempt - 2);
    return attempt <= 2 || maxIntervalMs < 0 ? grown : Math.min(grown, maxIntervalMs);
  };
  return {
    isLastAttempt,
    next(state, error) {
      const attempt = (state?.attempt ?? 0) + 1;
      if (!isLastAttempt(state)) return { attempt, intervalMs: jittered(quickMs(attempt), error) };
      if (state === undefined) return undefined;
      const lastQuickMs = quickMs(maxRetries);
      // Of several failures one is enough.
      if (partsOf(error).some(isOutage)) return { attempt: state.attempt, intervalMs: jittered(lastQuickMs, error) };
      const growth = 2 ** (attempt - maxRetries - 1);
      // A kind that is not served may be back soon.
      const grownMs = partsOf(error).some(isUnserved) ? FIRST_SLOW_MS : FIRST_SLOW_MS * growth;
      const slowMs = partsOf(error).some(isMendedElsewhere)
        ? Math.min(FIRST_LOOK_MS * growth, LONGEST_LOOK_MS)
        : Math.min(grownMs, LONGEST_SLOW_MS);
      return { attempt, intervalMs: jittered(Math.max(slowMs, lastQuickMs), error), isSlow: true };
    },
  };
}

// Not 500: with that the API server refuses some objects.
const OUTAGES: readonly number[] = [401, 429, 502, 503, 504];

function askedMs(error: unknown): number {
  return Math.max(0, ...partsOf(error).map((part) => findError<ApiError>(part, "ApiError")?.retryAfterMs ?? 0));
}

/** Returns the errors that an aggregate consists of, at any depth; of another error itself. */
export function partsOf(error: unknown): readonly unknown[] {
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
  const parts = all.flatMap((part) => (part === error ? [] : partsOf(part)));
  return parts.length === 0 ? [error] : parts;
}

function isOutage(part: unknown): boolean {
  const answer = findError<ApiError>(part, "ApiError");
  return answer === undefined ? findError(part, "ConnectionError") !== undefined : OUTAGES.includes(answer.code);
}

function isUnserved(part: unknown): boolean {
  const answer = findError<ApiError>(part, "ApiError");
  return answer?.code === 404 && !isAbsent(answer);
}

/** Returns the retry of a definition, which has options or a retry of its own; if that one throws, the default decides. */
export function guardedRetryOf(
  retry: RetryOptions | Retry | undefined,
  options: { readonly controller: string; readonly logger: Logger; readonly random?: (() => number) | undefined },
): Retry {
  const { controller, logger, random } = options;
  if (retry === undefined || !("next" in retry)) return createRetry(retry, random);
  const fallback = createRetry({}, random);
  const call = { what: "the retry of the controller", controller };
  const guarded = <Result>(decide: (by: Retry) => Result): Result => {
    try {
      return userCalls.run(call, () => decide(retry));
    } catch (error) {
      logger.error({}, `the retry of the controller failed, and the default takes its place: ${messageOf(error)}`);
      return decide(fallback);
    }
  };
  return {
    next: (state, error) => guarded((by) => checked(synchronous(by.next(state, error)))),
    isLastAttempt: (state) => guarded((by) => synchronous(by.isLastAttempt(state))),
  };
}

function checked(state: RetryState | undefined): RetryState | undefined {
  if (state !== undefined) requireNumbers("it", { intervalMs: [state.intervalMs, 0, Number.MAX_SAFE_INTEGER] });
  return state;
}
