// The settings of when primaries are reconciled, and the rate limiter that is made of them.
import { type Logger, messageOf } from "../base/logger.js";
import { synchronous, userCalls } from "../base/user-calls.js";
import { requireNumbers } from "../base/validation.js";
import { type Clock, systemClock } from "../base/wait.js";
import type { EventFilters } from "../cache/resource-view.js";
import { type ProcessorSettings, type Retry, type RetryOptions, type RetryState, createRetry } from "./processor.js";

/**
 * A part of the metadata of a primary, written as the downward API does: all labels, all annotations, one of them, or the owners.
 *
 * @example "metadata.labels['app.kubernetes.io/part-of']"
 */
export type PrimaryInput =
  | "metadata.labels"
  | "metadata.annotations"
  | "metadata.ownerReferences"
  | `metadata.${"labels" | "annotations"}['${string}']`;

/** The settings that decide when primaries are reconciled; they are part of the definition of a controller. */
export interface ScheduleSettings {
  /** When a failed reconcile is tried again: options of the usual retry, or an own one. */
  readonly retry?: RetryOptions | Retry;
  /** How often one primary is reconciled at most. Default: as often as something happens */
  readonly rateLimit?: RateLimitOptions | RateLimiterFactory;
  /** Reconciles a primary again when nothing happened for this long; 0 for never. Default: 10 hours */
  readonly maxReconciliationIntervalMs?: number;
  /** Whether changes that leave the generation of the primary as it is are passed over. Default: true */
  readonly generationAware?: boolean;
  /**
   * The metadata of the primary that the functions of the controller read: a change of it causes a reconcile, as a new generation does. Keys that
   * the controller itself applied do not count, and `metadata.annotations` does not include
   * `kubectl.kubernetes.io/last-applied-configuration` and those of the runtime. Generated code lists what your code reads. Default: none, as in
   * JOSDK, whose filter passes new generations alone
   *
   * @example inputs: ["metadata.labels['example.com/tier']", "metadata.annotations"]
   */
  readonly inputs?: readonly PrimaryInput[];
  /**
   * Whether an update of a primary has to be a new generation, the begin of its deletion, or the loss of its finalizer, besides what
   * `filters` ask for. False: `filters` decide alone. Default: true
   */
  readonly defaultFilters?: boolean;
  /** Which events of primaries cause a reconcile. Deletions, and their marks, are only filtered by `generic`. Default: all */
  readonly filters?: Omit<EventFilters<never>, "onDelete">;
  /** Whether a deletion, or the loss of a label of `labelSelector`, calls `reconcile`, too; without finalizers, cleanup and dependents. Default: false */
  readonly onAllEvents?: boolean;
  /**
   * After how long the signal of a reconcile is aborted. A reconcile that goes on all the same loses its slot to other primaries; its own
   * primary waits for its end. Default: 30 minutes. 0 for never.
   */
  readonly reconcileTimeoutMs?: number;
  /** How many primaries are reconciled at once. Default: 50 */
  readonly maxConcurrentReconciles?: number;
}

/** The part of a controller definition that the queue reads. */
export interface ScheduledController extends ScheduleSettings {
  readonly name: string;
  readonly workflow: { readonly primary: { readonly kind: string } };
}

/** When the primaries of one controller are reconciled: its settings with their defaults, its clock and its log. */
export interface Schedule {
  /** The name of the controller. */
  readonly controller: string;
  readonly kind: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Returns a number from 0 to 1 for the jitter of intervals. */
  readonly random: () => number;
  readonly settings: ProcessorSettings;
  /** After how long the signal of a reconcile is aborted; 0 for never. */
  readonly timeoutMs: number;
  readonly maxConcurrentReconciles: number;
  /** Creates the rate limiter of one primary; undefined without a limit. */
  readonly createLimiter: RateLimiterFactory | undefined;
}

const MAX_RECONCILIATION_INTERVAL_MS = 10 * 60 * 60 * 1000;
const RECONCILE_TIMEOUT_MS = 30 * 60 * 1000;
export const MAX_CONCURRENT_RECONCILES = 50;

/** Applies the defaults of the settings of a controller. */
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

/** Creates the retry of a definition. If a retry of the user throws, the default retry decides. */
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

/** Limits how often one primary is reconciled, as JOSDK's LinearRateLimiter does. */
export interface RateLimitOptions {
  /** 0 or less for no limit. */
  readonly maxReconciliations: number;
  readonly withinMs: number;
}

/** Limits the reconciles of one primary. */
export interface RateLimiter {
  /** Takes one reconcile at the time `nowMs`; returns 0, or the milliseconds to wait if there is none to take. Anything else limits nothing. */
  take(nowMs: number): number;
}

/** Creates the limiter of one primary, which is forgotten with it; for anything that fixed windows do not cover, write your own. */
export type RateLimiterFactory = () => RateLimiter;

/** Creates a limiter that counts in windows of fixed length. */
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

/** Creates the factory of rate limiters; undefined without a limit. A limiter of the user that throws does not limit. */
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
