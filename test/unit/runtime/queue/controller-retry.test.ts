import { ApiError, ConnectionError, RetryAfterError, TerminalError } from "#runtime/base/errors.js";
import { messageOf } from "#runtime/base/logger.js";
import type { PrimaryOutcome } from "#runtime/queue/controller.js";
import { assert, suite } from "../../../support/suite.js";
import { createBed, failureOf, SUCCESS } from "./controller-bed.js";

suite("retry policy", (test) => {
  test("retries after 2, 2, 3, 4.5 and 6.75 s, then after 1, 2, 4, 8 and 10 minutes", async () => {
    // What the API server refuses may pass later: a policy and a schema change without an event.
    for (const error of [new Error("no"), new ApiError(400, {}), new ApiError(413, {}), new ApiError(422, {})]) {
      const { observe, settle, advance, times, respond } = createBed();
      respond(() => failureOf(error));
      observe();
      await settle();
      for (let second = 0; second < 80; second++) await advance(250);
      const quick = [0, 2000, 4000, 7000, 11_500, 18_250];
      assert.equal(times(), quick, messageOf(error));
      for (let minute = 0; minute < 36; minute++) await advance(60_000);
      const minutes = times()
        .slice(quick.length)
        .map((at) => Math.floor((at - 18_250) / 60_000));
      assert.equal(minutes, [1, 3, 7, 15, 25, 35], messageOf(error));
    }
  });

  const unavailable = [
    new ConnectionError("nobody there"),
    new ApiError(503, {}),
    new ApiError(429, {}),
    new ApiError(401, {}),
    new AggregateError([new Error("another"), new Error("what", { cause: new ApiError(504, {}) })]),
  ];
  for (const error of unavailable)
    test(`counts no attempt during an outage (${messageOf(error)}), and retries at the longest interval`, async () => {
      const { observe, settle, advance, times, respond } = createBed({ retry: { maxRetries: 2 } });
      respond(() => failureOf(error));
      observe();
      await settle();
      for (let second = 0; second < 5; second++) await advance(2000);
      assert.equal(times(), [0, 2000, 4000, 6000, 8000, 10_000]);
      // What fails for another reason then is tried slowly.
      respond(() => failureOf());
      await advance(2000);
      await advance(59_999);
      assert.is(times().length, 7);
      await advance(1);
      assert.is(times().length, 8);
    });

  test("retries a kind that is not served every minute after the quick retries", async () => {
    const { observe, settle, advance, times, events, respond } = createBed({ retry: { maxRetries: 1 } });
    const error = new Error("what", { cause: new ApiError(404, { message: "404 page not found" }) });
    respond(() => failureOf(error));
    observe();
    await settle();
    for (let second = 0; second < 182; second += 2) await advance(2000);
    assert.equal(times(), [0, 2000, 62_000, 122_000, 182_000]);
    assert.is(events.at(-1)?.isGivenUp, true);
    respond(() => failureOf(new ApiError(404, { reason: "NotFound" })));
    for (let minute = 0; minute < 30; minute++) await advance(60_000);
    const minutes = times()
      .slice(5)
      .map((at) => Math.round((at - 182_000) / 60_000));
    assert.equal(minutes, [1, 11, 21], "an object that is not there is tried as all else");
  });

  test("never retries with maxRetries: 0, not even during an outage", async () => {
    for (const error of [unavailable[0], new ApiError(500, {}), new Error("no")]) {
      const { observe, settle, advance, times, respond } = createBed({ retry: { maxRetries: 0 } });
      respond(() => failureOf(error));
      observe();
      await settle();
      await advance(9 * 60 * 60 * 1000);
      assert.is(times().length, 1, messageOf(error));
    }
  });

  test("restarts after a success", async () => {
    const { observe, settle, advance, events, respond } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    await advance(2000);
    await advance(2000);
    respond(() => SUCCESS);
    await advance(3000);
    respond(() => failureOf());
    observe();
    await settle();
    assert.equal(
      events.map(({ retryAfterMs }) => retryAfterMs),
      [2000, 2000, 3000, undefined, 2000],
    );
  });

  test("keeps the time and the attempts of a pending retry while edits are reconciled immediately", async () => {
    const { observe, settle, advance, times, respond } = createBed({
      retry: { initialIntervalMs: 60_000, maxIntervalMs: 60_000, maxRetries: 2 },
    });
    respond(() => failureOf());
    observe();
    await settle();
    for (let index = 0; index < 6; index++) {
      await advance(1000);
      observe();
      await settle();
    }
    assert.equal(times(), [0, 1000, 2000, 3000, 4000, 5000, 6000]);
    await advance(54_000);
    assert.is(times().at(-1), 60_000, "the retry comes when it was due");
    await advance(60_000);
    assert.is(times().at(-1), 120_000, "one attempt was left");
  });

  test("reconciles later events as the last attempt after all retries, until one succeeds", async () => {
    const { observe, settle, advance, started, respond } = createBed({ retry: { maxRetries: 1 } });
    respond(() => failureOf());
    observe();
    await settle();
    await advance(2000);
    observe();
    await settle();
    respond(() => SUCCESS);
    observe();
    await settle();
    observe();
    await settle();
    assert.equal(
      started.map(({ isLastAttempt }) => isLastAttempt),
      [false, true, true, true, false],
    );
  });

  test("retries a RetryAfterError at its time without counting an attempt", async () => {
    const { observe, settle, advance, times, events, respond } = createBed();
    respond(() => failureOf(new RetryAfterError("later", 500)));
    observe();
    await settle();
    for (let index = 0; index < 10; index++) await advance(500);
    assert.is(times().length, 11);
    assert.ok(events.every(({ retryAfterMs }) => retryAfterMs === 500));
  });

  test("retries a RetryAfterError with an invalid time like any other error", async () => {
    for (const ms of [NaN, -1, Infinity]) {
      const { observe, settle, events, respond } = createBed();
      respond(() => failureOf(new RetryAfterError("later", ms)));
      observe();
      await settle();
      assert.equal(
        events.map(({ retryAfterMs }) => retryAfterMs),
        [2000],
      );
    }
  });

  test("uses the default interval if a custom retry returns an invalid one", async () => {
    const retry = { next: () => ({ attempt: 1, intervalMs: NaN }), isLastAttempt: () => false };
    const { observe, settle, events, respond } = createBed({ retry });
    respond(() => failureOf());
    observe();
    await settle();
    assert.equal(
      events.map(({ retryAfterMs }) => retryAfterMs),
      [2000],
    );
  });

  test("does not retry a TerminalError before the next event", async () => {
    const { observe, settle, advance, times, respond } = createBed();
    respond(() => failureOf(new TerminalError("never")));
    observe();
    await settle();
    await advance(9 * 60 * 60 * 1000);
    assert.is(times().length, 1);
    observe();
    await settle();
    assert.is(times().length, 2);
  });

  test("calls a custom retry with the error and its previous state", async () => {
    const asked: [number | undefined, string][] = [];
    const retry = {
      next: (state: { attempt: number } | undefined, error: unknown) => {
        asked.push([state?.attempt, (error as Error).message]);
        return state === undefined ? { attempt: 1, intervalMs: 7 } : undefined;
      },
      isLastAttempt: (state: object | undefined) => state !== undefined,
    };
    const { observe, settle, advance, times, respond } = createBed({ retry });
    respond(() => failureOf());
    observe();
    await settle();
    await advance(7);
    await advance(1000);
    assert.equal(times(), [0, 7]);
    assert.equal(asked, [
      [undefined, "no"],
      [1, "no"],
    ]);
  });

  test("treats an error that the reconcile throws as a failure", async () => {
    const { observe, settle, events, respond } = createBed();
    respond(() => {
      throw new Error("broken");
    });
    observe();
    await settle();
    assert.is((events[0]?.error as Error).message, "broken");
    assert.is(events[0]?.retryAfterMs, 2000);
  });
});

suite("reschedules", (test) => {
  test("run after maxReconciliationInterval and after rescheduleAfterMs", async () => {
    let outcome: PrimaryOutcome = { ...SUCCESS, rescheduleAfterMs: 300 };
    const { observe, settle, advance, times, respond } = createBed({ maxReconciliationIntervalMs: 1000 });
    respond(() => outcome);
    observe();
    await settle();
    await advance(300);
    outcome = SUCCESS;
    await advance(300);
    await advance(1000);
    assert.equal(times(), [0, 300, 600, 1600]);
  });

  test("run immediately with rescheduleAfterMs: 0, and never without one and without resync", async () => {
    const { observe, settle, times, respond, started, controller } = createBed({
      maxReconciliationIntervalMs: 0,
    });
    respond(() => (started.length < 3 ? { ...SUCCESS, rescheduleAfterMs: 0 } : SUCCESS));
    observe();
    await settle();
    assert.equal(times(), [0, 0, 0]);
    assert.is(controller.counts().timers, 0);
  });

  test("are dropped if they become due while a reconcile is running", async () => {
    const { observe, settle, advance, times, hold, respond } = createBed({ maxReconciliationIntervalMs: 0 });
    respond(() => ({ ...SUCCESS, rescheduleAfterMs: 1000 }));
    observe();
    await settle();
    const finish = hold();
    await advance(900);
    observe();
    await settle();
    await advance(200);
    await finish();
    await advance(5000);
    assert.equal(times(), [0, 900]);
  });

  test("respect a custom rate limiter, one per primary, which is dropped with it", async () => {
    let created = 0;
    const rateLimit = () => {
      let taken = 0;
      created++;
      return { take: () => (taken++ === 0 ? 0 : 70) };
    };
    const { observe, observeDeletion, settle, times, advance } = createBed({ rateLimit });
    observe();
    await settle();
    observe();
    await settle();
    await advance(70);
    assert.equal([created, times()], [1, [0]]);
    observeDeletion();
    observe({ uid: "u2" });
    await settle();
    assert.equal([created, times()], [2, [0, 70]]);
  });
});
