// JOSDK's GenericRetryExecutionTest.
import fc from "../../../support/fast-check.js";
import { type Retry, type RetryOptions, type RetryState, createRetry } from "#runtime/queue/processor.js";
import { guardedRetryOf } from "#runtime/queue/schedule-settings.js";
import { ApiError, BlockedError } from "#runtime/base/errors.js";
import { assert, suite } from "../../../support/suite.js";

function intervalsOf(options: RetryOptions, failures: number, random = () => 0): (number | undefined)[] {
  const retry = createRetry(options, random);
  let state: RetryState | undefined;
  return Array.from({ length: failures }, () => {
    const next = retry.next(state, new Error("no"));
    if (next !== undefined) state = next;
    return next?.intervalMs;
  });
}

suite("createRetry", (test) => {
  const MINUTE = 60_000;

  test("defaults to 2, 2, 3, 4.5 and 6.75 s, then to slow retries of 1 and 2 minutes", () => {
    assert.equal(intervalsOf({}, 7), [2000, 2000, 3000, 4500, 6750, MINUTE, 2 * MINUTE]);
  });

  test("treats an undefined option as its default", () => {
    const options = ["maxRetries", "initialIntervalMs", "multiplier", "maxIntervalMs", "jitter"];
    const undefinedOptions = Object.fromEntries(options.map((option) => [option, undefined]));
    assert.equal(
      intervalsOf(undefinedOptions, 7, () => 1),
      intervalsOf({}, 7, () => 1),
    );
  });

  test("runs 3 quick retries with maxRetries: 3 and then slow ones", () => {
    assert.equal(intervalsOf({ maxRetries: 3 }, 4), [2000, 2000, 3000, MINUTE]);
  });

  test("limits slow retries to 10 minutes, but not below the quick interval", () => {
    assert.is(intervalsOf({ maxRetries: 1 }, 20).at(-1), 10 * MINUTE);
    const hourly = { maxRetries: 2, initialIntervalMs: 60 * MINUTE };
    assert.equal(
      intervalsOf(hourly, 4),
      Array.from({ length: 4 }, () => 60 * MINUTE),
    );
  });

  test("retries after 10 s, doubling to 60 s, if another client must fix the cause", () => {
    const missing = { reason: "NotFound", message: 'namespaces "shop" not found' };
    const causes = [{ reason: "NamespaceTerminating" }];
    const mended = [
      new Error("dependent a", { cause: new BlockedError("ConfigMap already exists") }),
      new ApiError(404, missing),
      new ApiError(403, { reason: "Forbidden", details: { causes } }),
      new AggregateError([new Error("no"), new BlockedError("ConfigMap already exists")]),
    ];
    const slowOf = (error: unknown) => {
      const retry = createRetry({ maxRetries: 1 }, () => 0);
      let state: RetryState = { attempt: 1, intervalMs: 2_000 };
      return Array.from({ length: 5 }, () => (state = retry.next(state, error)!).intervalMs);
    };
    for (const error of mended) assert.equal(slowOf(error), [10_000, 20_000, 40_000, MINUTE, MINUTE]);
    const others = [new ApiError(404, { ...missing, message: 'pages "one" not found' }), new ApiError(403, {})];
    for (const error of others) assert.is(slowOf(error)[1], 2 * MINUTE);
  });

  test("waits at least Retry-After of the API server, up to 10 minutes", () => {
    const retry = createRetry({ maxRetries: 1 }, () => 0);
    const busy = (retryAfterMs: number) => new ApiError(429, { message: "busy" }, retryAfterMs);
    assert.is(retry.next(undefined, busy(30_000))?.intervalMs, 30_000);
    assert.is(retry.next(undefined, busy(500))?.intervalMs, 2_000);
    const several = new AggregateError([new Error("no"), new Error("because", { cause: busy(90_000) })]);
    assert.is(retry.next({ attempt: 1, intervalMs: 1 }, several)?.intervalMs, 90_000);
    assert.is(retry.next(undefined, busy(3_600_000))?.intervalMs, 10 * MINUTE);
  });

  test("adds up to 20% of jitter to each interval", () => {
    const random = fc.double({ min: 0, max: 1, noNaN: true });
    const options = fc.record({ maxRetries: fc.integer({ min: 1, max: 8 }), initialIntervalMs: fc.nat(10_000) });
    fc.assert(
      fc.property(options, random, fc.integer({ min: 1, max: 12 }), (given, drawn, failures) => {
        const plain = intervalsOf(given, failures) as number[];
        const varied = intervalsOf(given, failures, () => drawn) as number[];
        for (const [index, interval] of varied.entries()) {
          const shortest = plain[index]!;
          assert.ok(interval >= shortest && interval <= shortest * 1.2 + 1e-6, `${interval} for ${shortest}`);
        }
      }),
    );
  });

  test("adds up to the configured jitter, from 0 to 100%", () => {
    for (const [jitter, longest] of [
      [0, 1_000],
      [0.5, 1_500],
      [1, 2_000],
    ] as const)
      assert.equal(
        intervalsOf({ initialIntervalMs: 1_000, jitter }, 1, () => 1),
        [longest],
      );
  });

  test("limits the interval to maxIntervalMs from the third retry on", () => {
    assert.equal(intervalsOf({ initialIntervalMs: 500, multiplier: 10, maxIntervalMs: 700 }, 4), [500, 500, 700, 700]);
    const capped = intervalsOf({ initialIntervalMs: 2000, multiplier: 2, maxIntervalMs: 4500 }, 5);
    assert.equal(capped, [2000, 2000, 4000, 4500, 4500]);
  });

  test("never decreases the interval without maxIntervalMs", () => {
    assert.equal(intervalsOf({ initialIntervalMs: 20_000 }, 4), [20_000, 20_000, 20_000, 20_000]);
    assert.equal(intervalsOf({ multiplier: 10 }, 3), [2000, 2000, 2000 * 1.5 ** 5]);
  });

  test("has no limit of attempts and interval with -1", () => {
    const intervals = intervalsOf({ maxRetries: -1, maxIntervalMs: -1, multiplier: 2 }, 30);
    assert.is(intervals.at(-1), 2000 * 2 ** 28);
  });

  test("never retries with maxRetries: 0", () => {
    assert.equal(intervalsOf({ maxRetries: 0 }, 2), [undefined, undefined]);
  });

  test("counts attempts from the first retry", () => {
    const retry = createRetry();
    const first = retry.next(undefined, new Error("no"));
    assert.is(first?.attempt, 1);
    assert.is(retry.next(first, new Error("no"))?.attempt, 2);
  });

  test("reports the last attempt when no retry is left", () => {
    const retry = createRetry({ maxRetries: 2 });
    const first = retry.next(undefined, new Error("no"));
    assert.not(retry.isLastAttempt(undefined));
    assert.not(retry.isLastAttempt(first));
    assert.ok(retry.isLastAttempt(retry.next(first, new Error("no"))));
    assert.ok(createRetry({ maxRetries: 0 }).isLastAttempt(undefined));
    assert.not(createRetry({ maxRetries: -1 }).isLastAttempt(first));
  });

  test("calls a custom retry and uses the default if it throws", () => {
    const lines: string[] = [];
    const silent = () => {};
    const logger = {
      debug: silent,
      info: silent,
      warn: silent,
      error: (_: object, text: string) => void lines.push(text),
    };
    const own: Retry = {
      next: () => ({ attempt: 1, intervalMs: 9 }),
      isLastAttempt: () => {
        throw new Error("broken");
      },
    };
    const retry = guardedRetryOf(own, { controller: "page", logger, random: () => 0 });
    assert.is(retry.next(undefined, new Error("no"))?.intervalMs, 9);
    assert.is(retry.isLastAttempt(undefined), false);
    assert.equal(lines, ["custom retry of the controller failed, using the default: broken"]);
    assert.is(
      guardedRetryOf({ initialIntervalMs: 7 }, { controller: "page", logger, random: () => 0 }).next(
        undefined,
        new Error("no"),
      )?.intervalMs,
      7,
    );
  });
});
