/** How often and when a failed reconcile is tried again; the defaults are those of JOSDK's GenericRetry. */
export interface RetryOptions {
  /** Retries after the first failure; -1 for no end. Default 5. */
  readonly maxAttempts?: number;
  /** Default 2000. */
  readonly initialIntervalMs?: number;
  /** Default 1.5. */
  readonly multiplier?: number;
  /** Caps the interval; -1 for no cap. Default: the interval that the default of five attempts ends with. */
  readonly maxIntervalMs?: number;
}

/** Where the retries of one primary stand; made afresh after every success. */
export interface RetryState {
  /** Retries that were granted so far. */
  readonly attempt: number;
  readonly intervalMs: number;
}

const DEFAULTS = { maxAttempts: 5, initialIntervalMs: 2000, multiplier: 1.5, maxIntervalMs: 2000 * 1.5 ** 5 };

/** Returns the options with every default filled in. */
export function retryOptionsOf(options: RetryOptions = {}): Required<RetryOptions> {
  return { ...DEFAULTS, ...options };
}

/**
 * Returns the state after one more failure, whose `intervalMs` is the time to wait; undefined when the attempts are used up.
 *
 * The first two retries wait the initial interval, later ones grow (JOSDK GenericRetryExecution).
 */
export function nextRetry(options: Required<RetryOptions>, state: RetryState | undefined): RetryState | undefined {
  const attempt = state?.attempt ?? 0;
  if (options.maxAttempts >= 0 && attempt >= options.maxAttempts) return undefined;
  if (state === undefined || attempt < 2) return { attempt: attempt + 1, intervalMs: options.initialIntervalMs };
  const grown = state.intervalMs * options.multiplier;
  const intervalMs = options.maxIntervalMs >= 0 ? Math.min(grown, options.maxIntervalMs) : grown;
  return { attempt: attempt + 1, intervalMs };
}

/** Tells whether no retry is left after the attempt that `state` stands for. */
export function isLastAttempt(options: Required<RetryOptions>, state: RetryState | undefined): boolean {
  return options.maxAttempts >= 0 && (state?.attempt ?? 0) >= options.maxAttempts;
}
