// JOSDK's LinearRateLimiterTest.
import fc from "../../../support/fast-check.js";
import { createLinearRateLimiter, rateLimiterFactoryOf } from "#runtime/queue/schedule-settings.js";
import { assert, suite } from "../../../support/suite.js";

const none = () => {};
const logger = { debug: none, info: none, warn: none, error: none };
const silent = { controller: "page", logger };

suite("rate limiter", (test) => {
  test("delays a primary until the end of the window", () => {
    const limiter = createLinearRateLimiter({ maxReconciliations: 2, withinMs: 1000 });
    assert.is(limiter.take(100), 0);
    assert.is(limiter.take(400), 0);
    assert.is(limiter.take(400), 700);
    assert.is(limiter.take(1000), 100);
    assert.is(limiter.take(1100), 0);
  });

  test("is not created without a limit", () => {
    assert.is(rateLimiterFactoryOf(undefined, silent), undefined);
    assert.is(rateLimiterFactoryOf({ maxReconciliations: -1, withinMs: 1000 }, silent), undefined);
    assert.is(rateLimiterFactoryOf({ maxReconciliations: 0, withinMs: 1000 }, silent), undefined);
  });

  test("is separate for each primary", () => {
    const create = rateLimiterFactoryOf({ maxReconciliations: 1, withinMs: 1000 }, silent)!;
    const [one, other] = [create(), create()];
    assert.equal([one.take(0), one.take(0), other.take(0)], [0, 1000, 0]);
  });

  test("ignores an invalid wait of a custom rate limiter and logs an error", () => {
    for (const wait of [Infinity, NaN, -1, "5", undefined] as number[]) {
      const lines: string[] = [];
      const error = (_: object, message: string) => void lines.push(message);
      const limiter = rateLimiterFactoryOf(() => ({ take: () => wait }), {
        controller: "page",
        logger: { ...logger, error },
      })!();
      assert.is(limiter.take(0), 0);
      assert.match(
        lines.join(),
        /^custom rate limiter failed, reconciling without a limit: it has .* for its wait; it needs 0 to/,
      );
    }
  });

  test("accepts a primary after the returned wait, and never more than the limit per window", () => {
    const waits = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), waits, (maxReconciliations, steps) => {
        let now = 0;
        const limiter = createLinearRateLimiter({ maxReconciliations, withinMs: 1000 });
        let windowStart = -Infinity;
        let count = 0;
        for (const step of steps) {
          now += step;
          const waitMs = limiter.take(now);
          if (now - windowStart >= 1000) [windowStart, count] = [now, 0];
          if (waitMs > 0) {
            assert.is(count, maxReconciliations);
            now += waitMs;
            assert.is(limiter.take(now), 0);
            [windowStart, count] = [now, 1];
          } else assert.ok(++count <= maxReconciliations);
        }
      }),
    );
  });
});
