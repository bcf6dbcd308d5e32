// The settings that decide when primaries are reconciled, and the rate limiter.
import { type Logger, messageOf } from "../base/logger.js";
import { synchronous, userCalls } from "../base/user-calls.js";
import { requireNumbers } from "../base/validation.js";
import { type Clock, systemClock } from "../base/wait.js";
import type { EventFilters } from "../cache/resource-view.js";
import { type ProcessorSettings, type Retry, type RetryOptions, type RetryState, createRetry } from "./processor.js";

/**
 * Metadata of a primary as a downward API path: all labels, all annotations, one of them, or the owner references.
 *
 * @example "metadata.labels['app.kubernetes.io/part-of']"
 */
export type PrimaryInput =
  | "metadata.labels"
  | "metadata.annotations"
  | "metadata.ownerReferences"
  | `metadata.${"labels" | "annotations"}['${string}']`;

/** Settings that decide when primaries are reconciled. They are part of the definition of a controller. */
export interface ScheduleSettings {
  /** When a failed reconcile is retried: options of the default retry, or a custom one. */
  readonly retry?: RetryOptions | Retry;
  /** Limits how often a primary is reconciled. Default: no limit */
  readonly rateLimit?: RateLimitOptions | RateLimiterFactory;
  /**
   * The resync interval: a primary is reconciled again if nothing else caused a reconcile for this long, in milliseconds; 0 to disable. Default: 10
   * hours
   */
  readonly maxReconciliationIntervalMs?: number;
  /** Whether updates that do not change the generation of the primary are ignored. Default: true */
  readonly generationAware?: boolean;
  /**
   * Metadata of the primary that the functions of the controller read. A change of it causes a reconcile, like a new generation. Keys that the
   * controller itself applied are ignored; `metadata.annotations` excludes `kubectl.kubernetes.io/last-applied-configuration` and the annotations of
   * the runtime. Generated code lists what your code reads. Default: none, as in JOSDK, whose filter only accepts new generations
   *
   * @example inputs: ["metadata.labels['example.com/tier']", "metadata.annotations"]
   */
  readonly inputs?: readonly PrimaryInput[];
  /**
   * Whether an update of a primary must be a new generation, the start of its deletion, or the loss of its finalizer, in addition to passing
   * `filters`. If false, only `filters` decide. Default: true
   */
  readonly defaultFilters?: boolean;
  /**
   * Which events of primaries cause a reconcile. Deletions, and updates that set the deletionTimestamp, are only filtered by `generic`. Default: all
   */
  readonly filters?: Omit<EventFilters<never>, "onDelete">;
  /**
   * Whether `reconcile` is also called for a deleted primary, or for one that no longer matches `labelSelector`; without finalizers, cleanup, and
   * dependents. Default: false
   */
  readonly onAllEvents?: boolean;
  /**
   * The time in milliseconds after which the signal of a reconcile is aborted. If the function does not return then, its worker is freed for other
   * primaries; its own primary is not reconciled before it returns. 0 to disable. Default: 30 minutes
   */
  readonly reconcileTimeoutMs?: number;
  /** The maximum number of primaries that are reconciled concurrently. Default: 50 */
  readonly maxConcurrentReconciles?: number;
}

/** The part of a controller definition that the queue reads. */
export interface ScheduledController extends ScheduleSettings {
  readonly name: string;
  readonly workflow: { readonly primary: { readonly kind: string } };
}

/** The schedule of a controller: its settings with defaults applied, its clock, and its logger. */
export interface Schedule {
  /** The name of the controller. */
  readonly controller: string;
  readonly kind: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Returns a number from 0 to 1, for the jitter of intervals. */
  readonly random: () => number;
  readonly settings: ProcessorSettings;
  /** The time in milliseconds after which the signal of a reconcile is aborted; 0 to disable. */
  readonly timeoutMs: number;
  readonly maxConcurrentReconciles: number;
  /** Creates the rate limiter of a primary; undefined without a limit. */
  readonly createLimiter: RateLimiterFactory | undefined;
}

const MAX_RECONCILIATION_INTERVAL_MS = 10 * 60 * 60 * 1000;
const RECONCILE_TIMEOUT_MS = 30 * 60 * 1000;
export const MAX_CONCURRENT_RECONCILES = 50;

/** Applies the defaults to the settings of a controller. */
export function scheduleOf(
  definition: ScheduledController,
  {
    logger,
    clock = systemClock,
    random = Math.random,
  }: { readonly logger: Logger; readonly clock?: Clock | undefined; readonly random?: (() => number) | undefined },
): Schedule {
  const { name: controller, maxReconciliationIntervalMs: longestMs = MAX_RECONCILIATION_INTERVAL_MS } = definition;
  return {
    ...{ controller, kind: definition.workflow.primary.kind, logger, clock, random },
    settings: {
      retry: guardedRetryOf(definition.retry, { controller, logger, random }),
      resyncAfterMs: longestMs > 0 ? longestMs : undefined,
      onAllEvents: definition.onAllEvents ?? false,
    },
    timeoutMs: definition.reconcileTimeoutMs ?? RECONCILE_TIMEOUT_MS,
    maxConcurrentReconciles: definition.maxConcurrentReconciles ?? MAX_CONCURRENT_RECONCILES,
    createLimiter: rateLimiterFactoryOf(definition.rateLimit, { controller, logger }),
  };
}

/** Creates the retry of a controller. Falls back to the default retry whenever a custom one throws. */
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
      logger.error({}, `custom retry of the controller failed, using the default: ${messageOf(error)}`);
      return decide(fallback);
    }
  };
  return {
    next: (state, error) => guarded((by) => checkedState(synchronous(by.next(state, error)))),
    isLastAttempt: (state) => guarded((by) => synchronous(by.isLastAttempt(state))),
  };
}

function checkedState(state: RetryState | undefined): RetryState | undefined {
  if (state !== undefined) requireNumbers("it", { intervalMs: [state.intervalMs, 0, Number.MAX_SAFE_INTEGER] });
  return state;
}

/** Limits how often a primary is reconciled, like JOSDK's LinearRateLimiter. */
export interface RateLimitOptions {
  /** The maximum number of reconciles within `withinMs`; 0 or less for no limit. */
  readonly maxReconciliations: number;
  readonly withinMs: number;
}

/** Limits the reconciles of one primary. */
export interface RateLimiter {
  /**
   * Takes one reconcile at time `nowMs`. Returns 0 if it may run now, or the time to wait in milliseconds. Any other value disables the limit for
   * this call.
   */
  take(nowMs: number): number;
}

/** Creates the rate limiter of one primary, which is dropped with the primary. Implement it for anything that fixed windows do not cover. */
export type RateLimiterFactory = () => RateLimiter;

/** Creates a limiter with fixed windows. */
export function createLinearRateLimiter({ maxReconciliations, withinMs }: RateLimitOptions): RateLimiter {
  let startedAt = -Infinity;
  let count = 0;
  return {
    take(nowMs) {
      if (startedAt + withinMs <= nowMs) {
        startedAt = nowMs;
        count = 0;
      }
      if (count >= maxReconciliations) return startedAt + withinMs - nowMs;
      count++;
      return 0;
    },
  };
}

/** Creates the factory of rate limiters; undefined without a limit. A custom limiter that throws does not limit. */
export function rateLimiterFactoryOf(
  rateLimit: RateLimitOptions | RateLimiterFactory | undefined,
  { controller, logger }: { readonly controller: string; readonly logger: Logger },
): RateLimiterFactory | undefined {
  if (rateLimit === undefined) return undefined;
  if (typeof rateLimit !== "function")
    return rateLimit.maxReconciliations > 0 ? () => createLinearRateLimiter(rateLimit) : undefined;
  const call = { what: "the rate limiter of the controller", controller };
  return () => {
    let limiter: RateLimiter | undefined;
    return {
      take(nowMs) {
        try {
          const waitMs = synchronous(userCalls.run(call, () => (limiter ??= rateLimit()).take(nowMs)));
          requireNumbers("it", { "its wait": [waitMs, 0, Number.MAX_SAFE_INTEGER] });
          return waitMs;
        } catch (error) {
          logger.error({}, `custom rate limiter failed, reconciling without a limit: ${messageOf(error)}`);
          return 0;
        }
      },
    };
  };
}
