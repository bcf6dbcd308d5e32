import { findError, type ApiError } from "../base/errors.js";
import { messageOf, type Logger } from "../base/logger.js";
import { synchronous } from "../base/promises.js";

/**
 * How often and when a failed reconcile is tried again; the defaults are those of JOSDK's GenericRetry. While the API server cannot be
 * reached or takes no requests, retries go on at the last interval: nothing would bring the object back when it is well again.
 */
export interface RetryOptions {
  /** Retries after the first failure; -1 for no end, 0 for none. Default 5. */
  readonly maxAttempts?: number;
  /** Default 2000. */
  readonly initialIntervalMs?: number;
  /** Default 1.5. */
  readonly multiplier?: number;
  /** Caps the interval; -1 for no cap. Default: the interval that the default of five attempts ends with, or the initial one if that is longer. */
  readonly maxIntervalMs?: number;
}

/** Where the retries of one primary stand; made afresh after every success. */
export interface RetryState {
  /** Retries that were granted so far. */
  readonly attempt: number;
  /** How long the last one that was granted waits. */
  readonly intervalMs: number;
}

/** Decides whether and when a failed reconcile is tried again; for anything that growing intervals do not cover, write your own. */
export interface Retry {
  /**
   * Returns the state after one more failure, whose `intervalMs` is the time to wait; undefined when no retry is left. `state` is what it
   * returned for this primary before; undefined for the first failure since a success.
   */
  next(state: RetryState | undefined, error: unknown): RetryState | undefined;
  /** Tells whether no retry is left after the attempt that `state` stands for. */
  isLastAttempt(state: RetryState | undefined): boolean;
}

const DEFAULTS = { maxAttempts: 5, initialIntervalMs: 2000, multiplier: 1.5, maxIntervalMs: 2000 * 1.5 ** 5 };

/** Creates the retry of these options: the first two wait the initial interval, later ones grow (JOSDK GenericRetryExecution). */
export function createRetry(options: RetryOptions = {}): Retry {
  const { maxAttempts, initialIntervalMs, multiplier } = { ...DEFAULTS, ...options };
  const maxIntervalMs = options.maxIntervalMs ?? Math.max(DEFAULTS.maxIntervalMs, initialIntervalMs);
  const isLastAttempt = (state: RetryState | undefined) => maxAttempts >= 0 && (state?.attempt ?? 0) >= maxAttempts;
  return {
    isLastAttempt,
    next(state, error) {
      if (isLastAttempt(state)) return isOutage(error) ? state : undefined;
      const attempt = (state?.attempt ?? 0) + 1;
      if (state === undefined || attempt <= 2) return { attempt, intervalMs: initialIntervalMs };
      const grown = state.intervalMs * multiplier;
      return { attempt, intervalMs: maxIntervalMs >= 0 ? Math.min(grown, maxIntervalMs) : grown };
    },
  };
}

// Not 500: with that the API server refuses some objects.
const OUTAGES: readonly number[] = [429, 502, 503, 504];

// Whether the API server could not do what was asked, whatever it was; of several failures one is enough.
function isOutage(error: unknown): boolean {
  if (error instanceof AggregateError && error.errors.length > 0) return (error.errors as unknown[]).some(isOutage);
  const answer = findError<ApiError>(error, "ApiError");
  return answer === undefined ? findError(error, "ConnectionError") !== undefined : OUTAGES.includes(answer.code);
}

/** Returns the retry of a definition, which has options or a retry of its own; if that one throws, the default decides. */
export function guardedRetryOf(retry: RetryOptions | Retry | undefined, logger: Logger): Retry {
  if (retry === undefined || !("next" in retry)) return createRetry(retry);
  const fallback = createRetry();
  const guarded = <Result>(decide: (by: Retry) => Result): Result => {
    try {
      return decide(retry);
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
  if (state !== undefined && !(Number.isFinite(state.intervalMs) && state.intervalMs >= 0))
    throw new RangeError(`its intervalMs is ${state.intervalMs}, and has to be 0 or more`);
  return state;
}
