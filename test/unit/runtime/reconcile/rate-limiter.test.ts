import fc from "fast-check";
import { RateLimiter } from "#runtime/reconcile/rate-limiter.js";
import { assert, suite } from "../../../support/suite.js";

suite("rate limiter", (test) => {
  test("a used-up window makes the key wait for its end", () => {
    let now = 100;
    const limiter = new RateLimiter({ maxReconciliations: 2, withinMs: 1000 }, () => now);
    assert.is(limiter.take("a"), 0);
    now = 400;
    assert.is(limiter.take("a"), 0);
    assert.is(limiter.take("a"), 700);
    assert.is(limiter.take("b"), 0, "another key has its own window");
    now = 1100;
    assert.is(limiter.take("a"), 0);
  });

  test("a forgotten key starts a new window", () => {
    const limiter = new RateLimiter({ maxReconciliations: 1, withinMs: 1000 }, () => 0);
    limiter.take("a");
    limiter.delete("a");
    assert.is(limiter.take("a"), 0);
  });

  test("whoever waits as told is let through, and no more than the limit pass in one window", () => {
    const waits = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), waits, (maxReconciliations, steps) => {
        let now = 0;
        const limiter = new RateLimiter({ maxReconciliations, withinMs: 1000 }, () => now);
        let windowStart = -Infinity;
        let count = 0;
        for (const step of steps) {
          now += step;
          const waitMs = limiter.take("a");
          if (now - windowStart >= 1000) [windowStart, count] = [now, 0];
          if (waitMs > 0) {
            assert.is(count, maxReconciliations);
            now += waitMs;
            assert.is(limiter.take("a"), 0);
            [windowStart, count] = [now, 1];
          } else assert.ok(++count <= maxReconciliations);
        }
      }),
    );
  });
});
