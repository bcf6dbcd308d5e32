import {
  isLastAttempt,
  nextRetry,
  retryOptionsOf,
  type RetryOptions,
  type RetryState,
} from "#runtime/reconcile/retry.js";
import { assert, suite } from "../../../support/suite.js";

function intervalsOf(options: RetryOptions, failures: number): (number | undefined)[] {
  const complete = retryOptionsOf(options);
  let state: RetryState | undefined;
  return Array.from({ length: failures }, () => {
    const next = nextRetry(complete, state);
    if (next !== undefined) state = next;
    return next?.intervalMs;
  });
}

suite("retry", (test) => {
  test("the default waits 2, 2, 3, 4.5 and 6.75 s and is then exhausted", () => {
    assert.equal(intervalsOf({}, 7), [2000, 2000, 3000, 4500, 6750, undefined, undefined]);
  });

  test("the interval is capped from the third retry on", () => {
    assert.equal(intervalsOf({ initialIntervalMs: 500, multiplier: 10, maxIntervalMs: 700 }, 4), [500, 500, 700, 700]);
    assert.equal(intervalsOf({ initialIntervalMs: 20_000 }, 3), [20_000, 20_000, 2000 * 1.5 ** 5]);
  });

  test("-1 means no end and no cap", () => {
    const intervals = intervalsOf({ maxAttempts: -1, maxIntervalMs: -1, multiplier: 2 }, 30);
    assert.is(intervals.at(-1), 2000 * 2 ** 28);
  });

  test("no attempts means no retry", () => {
    assert.equal(intervalsOf({ maxAttempts: 0 }, 2), [undefined, undefined]);
  });

  test("the last attempt is the one after which no retry is left", () => {
    const options = retryOptionsOf({ maxAttempts: 2 });
    let state = nextRetry(options, undefined);
    assert.not(isLastAttempt(options, undefined));
    assert.not(isLastAttempt(options, state));
    state = nextRetry(options, state);
    assert.ok(isLastAttempt(options, state));
    assert.ok(isLastAttempt(retryOptionsOf({ maxAttempts: 0 }), undefined));
    assert.not(isLastAttempt(retryOptionsOf({ maxAttempts: -1 }), state));
  });
});
