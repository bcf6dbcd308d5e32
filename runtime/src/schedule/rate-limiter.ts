import { requireNumbers } from "../base/checks.js";
import { messageOf, type Logger } from "../base/logger.js";
import { synchronous } from "../base/promises.js";
import { userCalls } from "../base/user-calls.js";

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

/** Returns how limiters are made by options or a factory of the user; undefined without a limit. A user's limiter that throws limits nothing. */
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
          logger.error({}, `the rate limiter failed, and limits nothing: ${messageOf(error)}`);
          return 0;
        }
      },
    };
  };
}
