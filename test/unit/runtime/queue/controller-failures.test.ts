// What a failing, a restless or a hanging reconcile may cost: a pause for events, a slow end, a place.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import fc from "../../../support/fast-check.js";
import { ApiError, RetryAfterError, TerminalError } from "#runtime/base/errors.js";
import type { PrimaryOutcome } from "#runtime/queue/controller.js";
import type { Retry } from "#runtime/queue/processor.js";
import { givenUpOf } from "#runtime/queue/controller-details.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { createBed, failureOf, KEY, SUCCESS } from "./controller-bed.js";

const MINUTE = 60_000;

suite("retry", (test) => {
  test("coalesces secondary events into the pending retry", async () => {
    const { observe, observeSecondary, settle, advance, times, started, respond } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    for (let index = 0; index < 79; index++) {
      observeSecondary();
      await advance(50);
    }
    assert.equal(times(), [0, 2000]);
    observeSecondary();
    await advance(50);
    assert.equal(times(), [0, 2000, 4000]);
    assert.equal(
      started[2]?.scope.reasons.map(({ kind }) => kind),
      ["secondary", "retry"],
    );
  });

  test("counts an attempt if a secondary event arrives during a failing reconcile", async () => {
    const { observe, observeSecondary, settle, started, hold, nextIn } = createBed();
    const finish = hold();
    observe();
    await settle();
    observeSecondary();
    await finish(failureOf());
    assert.equal([started.length, nextIn()], [1, 2000]);
  });

  test("runs immediately on a new generation or deletionTimestamp", async () => {
    const { observe, settle, times, respond } = createBed();
    respond(() => failureOf());
    observe({ generation: 1 });
    await settle();
    observe({ generation: 2 });
    await settle();
    observe({ generation: 2, deletionTimestamp: "2026-11-21T00:00:00Z" });
    await settle();
    assert.equal(times(), [0, 0, 0]);
  });

  test("delays updates that do not change the generation until the retry", async () => {
    const { observe, settle, advance, times, respond } = createBed({ generationAware: false });
    respond(() => failureOf());
    for (const text of ["a", "b", "c"]) {
      observe({ generation: 1, labels: { text } });
      await settle();
    }
    assert.equal(times(), [0]);
    await advance(2000);
    assert.equal(times(), [0, 2000]);
  });

  for (const error of [
    new TerminalError("never"),
    new RetryAfterError("in an hour", 60 * MINUTE),
    new ApiError(422, {}),
  ])
    test(`delays events by 3 s, growing to 15 s, if no retry is near (${error.name})`, async () => {
      const { observe, observeSecondary, settle, advance, times, respond } = createBed({ retry: { maxRetries: 0 } });
      respond(() => failureOf(error));
      observe();
      await settle();
      for (let index = 0; index < 10 * 60; index++) {
        observeSecondary();
        await advance(100);
      }
      const gaps = times().map((at, index, all) => at - (all[index - 1] ?? 0));
      assert.equal(gaps.slice(1, 6).map(Math.round), [3000, 4500, 6800, 10_200, 15_000]);
    });

  test("runs an event immediately after the pause", async () => {
    const { observe, observeSecondary, settle, advance, times, respond } = createBed({ retry: { maxRetries: 0 } });
    respond(() => failureOf());
    observe();
    await settle();
    await advance(5000);
    observeSecondary();
    await settle();
    assert.equal(times(), [0, 5000]);
  });

  test("keeps the intervals between failed reconciles for any events, and loses no event", async () => {
    const step = fc.record({ waitMs: fc.integer({ min: 0, max: 4000 }), isDuringRun: fc.boolean() });
    const retry = fc.record({
      maxRetries: fc.integer({ min: -1, max: 3 }),
      initialIntervalMs: fc.integer({ min: 1, max: 20_000 }),
    });
    await fc.assert(
      fc.asyncProperty(retry, fc.array(step, { maxLength: 30 }), async (options, steps) => {
        const bed = createBed({ retry: options });
        let next = steps.values();
        bed.respond(() => failureOf());
        bed.observe();
        await bed.settle();
        let toldAt = 0;
        for (const { waitMs, isDuringRun } of next) {
          if (isDuringRun)
            bed.respond(() => {
              bed.observeSecondary();
              return failureOf();
            });
          else bed.respond(() => failureOf());
          bed.observeSecondary();
          toldAt = bed.clock.now();
          await bed.advance(waitMs);
        }
        bed.respond(() => failureOf());
        await bed.advance(15_000);
        const times = bed.times();
        assert.ok(times.at(-1)! >= toldAt || steps.length === 0, "the last event is lost");
        for (const [index, at] of times.entries()) {
          if (index === 0) continue;
          const isRetry = bed.started[index]!.scope.reasons.some(({ kind }) => kind === "retry");
          // A retry that is more than 5 s away keeps its time, whatever fails before it.
          const pauseMs = Math.min(3000 * 1.5 ** (index - 1), isRetry ? 5000 : 15_000);
          const shortest = Math.min(options.maxRetries === 0 ? Infinity : options.initialIntervalMs, pauseMs);
          assert.ok(at - times[index - 1]! >= shortest - 1e-6, `${times.join(", ")} with ${shortest}`);
        }
      }),
      { numRuns: runs(60) },
    );
  });
});

suite("exhausted primaries", (test) => {
  test("are listed with their last error until they succeed or are deleted", async () => {
    const { observe, observeDeletion, settle, advance, controller, events, respond } = createBed({
      retry: { maxRetries: 1 },
    });
    respond(({ key }) => failureOf(new Error(`no ${key}`)));
    observe();
    observe({ name: "two" });
    await settle();
    assert.equal(givenUpOf(controller.primaries), { count: 0, primaries: [] });
    await advance(2000);
    assert.equal(givenUpOf(controller.primaries), {
      count: 2,
      primaries: [
        { primary: KEY, failures: 2, error: `no ${KEY}` },
        { primary: "home/two", failures: 2, error: "no home/two" },
      ],
    });
    assert.equal(
      events.map(({ isGivenUp, retryAfterMs }) => [isGivenUp, retryAfterMs]),
      [
        [undefined, 2000],
        [undefined, 2000],
        [true, MINUTE],
        [true, MINUTE],
      ],
    );
    observeDeletion("home/two");
    assert.is(givenUpOf(controller.primaries).count, 1);
    respond(() => SUCCESS);
    await advance(MINUTE);
    assert.is(givenUpOf(controller.primaries).count, 0);
    assert.is(events.at(-1)?.isGivenUp, undefined);
  });

  test("list at most 10 primaries but count all", async () => {
    const { observe, settle, controller, respond } = createBed({ retry: { maxRetries: 0 } });
    respond(() => failureOf());
    for (let index = 0; index < 30; index++) observe({ name: `page-${index}` });
    await settle();
    assert.equal([givenUpOf(controller.primaries).count, givenUpOf(controller.primaries).primaries.length], [30, 10]);
  });
});

suite("immediate reschedules", (test) => {
  const atOnce: { readonly [what: string]: readonly [outcome: PrimaryOutcome, retry?: Retry] } = {
    "a rescheduleAfterMs": [{ ...SUCCESS, rescheduleAfterMs: 0 }],
    "a RetryAfterError": [failureOf(new RetryAfterError("now", 0))],
    "a custom retry": [failureOf(), { next: () => ({ attempt: 1, intervalMs: 0 }), isLastAttempt: () => false }],
  };
  for (const [what, [outcome, retry]] of Object.entries(atOnce))
    test(`slow down to 1 s after 10 in a row by ${what}, with one warning`, async () => {
      const { observe, settle, advance, times, lines, events, respond } = createBed(retry && { retry });
      respond(() => outcome);
      observe();
      for (let index = 0; index < 20; index++) await settle();
      assert.equal(
        times(),
        Array.from({ length: 11 }, () => 0),
      );
      for (let index = 0; index < 10_000; index++) await advance(1);
      const gaps = times().map((at, index, all) => at - (all[index - 1] ?? 0));
      assert.equal(gaps.slice(11, 20), [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
      if (outcome.failure !== undefined) assert.equal(events[11]?.retryAfterMs, 20);
      const warnings = lines.filter(({ message }) => !message.startsWith("reconcile failed"));
      assert.equal(
        warnings.map(({ level }) => level),
        ["warn"],
      );
      assert.match(warnings[0]!.message, "was below 100 ms 11 times in a row");
    });

  for (const [what, rescheduleAfterMs, isSlowedDown] of [
    ["are not slowed down at 100 ms", 100, false],
    ["are slowed down at 99 ms", 99, true],
  ] as const)
    test(what, async () => {
      const { observe, settle, advance, times, lines, respond } = createBed();
      respond(() => ({ ...SUCCESS, rescheduleAfterMs }));
      observe();
      await settle();
      for (let count = 0; count < 1_000; count++) await advance(10);
      const gaps = times().map((at, index, all) => at - (all[index - 1] ?? 0));
      assert.is(gaps.length > 20, true);
      assert.equal(
        [gaps.slice(1, 11).every((gap) => gap >= rescheduleAfterMs && gap < 110), gaps.at(-1)! >= 1_000, lines.length],
        [true, isSlowedDown, isSlowedDown ? 1 : 0],
      );
    });

  test("start again with 10 free ones after a reconcile without or with a later reschedule", async () => {
    let outcome: PrimaryOutcome = { ...SUCCESS, rescheduleAfterMs: 0 };
    const { observe, settle, advance, times, respond } = createBed();
    respond(() => outcome);
    for (let round = 0; round < 2; round++) {
      outcome = { ...SUCCESS, rescheduleAfterMs: 0 };
      observe();
      for (let index = 0; index < 20; index++) await settle();
      outcome = round === 0 ? SUCCESS : { ...SUCCESS, rescheduleAfterMs: 5000 };
      await advance(10);
    }
    assert.equal(times().length, 2 * 12);
  });

  test("are overtaken by an edit", async () => {
    const { observe, settle, advance, times, respond, clock } = createBed();
    respond(() => ({ ...SUCCESS, rescheduleAfterMs: 0 }));
    observe();
    for (let index = 0; index < 3000; index++) await advance(1);
    await advance(500);
    const { length } = times();
    observe();
    await settle();
    assert.equal(times().slice(length), [clock.now()]);
  });
});

suite("reconcile timeout", (test) => {
  test("aborts the signal after 30 minutes, logs it and retries", async () => {
    const { observe, settle, advance, started, hold, lines } = createBed();
    const finish = hold();
    observe();
    await settle();
    const { signal } = started[0]!.scope;
    await advance(30 * MINUTE - 1);
    assert.not(signal.aborted);
    await advance(1);
    assert.ok(signal.aborted);
    assert.match((signal.reason as Error).message, "reconcile timed out after 1800 s (reconcileTimeoutMs)");
    assert.match(lines[0]!.message, "reconcile timed out after 1800 s");
    await finish(failureOf(signal.reason));
    await advance(2000);
    assert.is(started.length, 2, "it is retried");
    assert.not(started[1]!.scope.signal.aborted);
  });

  test("is disabled by 0", async () => {
    const { observe, settle, advance, started, hold } = createBed({ reconcileTimeoutMs: 0 });
    hold();
    observe();
    await settle();
    await advance(600 * MINUTE);
    assert.not(started[0]!.scope.signal.aborted);
  });

  test("frees the worker 30 s after the abort, without a concurrent reconcile of the primary", async () => {
    const { observe, settle, advance, started, hold, controller, lines, events } = createBed({
      maxConcurrentReconciles: 1,
      reconcileTimeoutMs: 1000,
    });
    const finish = hold();
    observe();
    observe({ name: "two" });
    await settle();
    await advance(1000);
    assert.is(started.length, 1, "it may end now that its signal is aborted");
    await advance(30_000);
    assert.equal(
      started.map(({ key }) => key),
      [KEY, "home/two"],
    );
    assert.is(lines.at(-1)?.level, "error");
    observe();
    await advance(100);
    assert.equal([started.length, controller.counts().running], [2, 2]);
    // The first to wait is the first that started.
    await finish();
    assert.is(events.length, 1);
    await finish();
    assert.equal(
      started.map(({ key }) => key),
      [KEY, "home/two", KEY],
    );
  });

  test("waits for a reconcile without a worker before the next start", async () => {
    const { observe, settle, advance, hold, controller, clock } = createBed({ reconcileTimeoutMs: 1000 });
    const finish = hold();
    observe();
    await settle();
    await advance(31_000);
    const stopped = controller.stop(100);
    clock.advance(100);
    assert.is(await stopped, false);
    let isIdle = false;
    void controller.dispatcher.whenIdle().then(() => (isIdle = true));
    await settle();
    assert.not(isIdle);
    await finish();
    assert.ok(isIdle);
  });
});

suite("deletion during a reconcile", (test) => {
  const DELETING = { deletionTimestamp: "2026-11-21T00:00:00Z" };

  test("aborts the reconcile and runs the cleanup immediately afterwards", async () => {
    const { observe, settle, started, hold, lines } = createBed();
    const finish = hold();
    observe();
    await settle();
    const { signal } = started[0]!.scope;
    observe(DELETING);
    assert.match((signal.reason as Error).message, "the primary is being deleted");
    assert.is(started.length, 1, "never two at once");
    await finish(failureOf(signal.reason));
    assert.equal([started.length, started[1]?.attempt], [2, 0]);
    assert.not(started[1]!.scope.signal.aborted);
    assert.equal(
      lines.map(({ level }) => level),
      ["debug"],
    );
    observe({ ...DELETING, labels: { more: "x" } });
    assert.not(started[1]!.scope.signal.aborted, "a cleanup is not ended");
  });

  test("aborts the reconcile of a deleted primary, unless a filter rejects the event", async () => {
    for (const [filters, isAborted] of [
      [undefined, true],
      [{ generic: ({ metadata }: KubernetesObject) => metadata.deletionTimestamp === undefined }, false],
    ] as const) {
      const { observe, observeDeletion, settle, started, hold } = createBed(filters === undefined ? {} : { filters });
      hold();
      observe();
      await settle();
      if (filters === undefined) observeDeletion();
      else observe(DELETING);
      assert.is(started[0]!.scope.signal.aborted, isAborted);
    }
  });

  test("does not abort the reconcile with onAllEvents", async () => {
    const { observe, observeDeletion, settle, started, hold } = createBed({ onAllEvents: true });
    hold();
    observe();
    await settle();
    observe(DELETING);
    observeDeletion();
    assert.not(started[0]!.scope.signal.aborted);
  });
});

suite("maxReconciliationInterval", (test) => {
  test("is reduced by up to 10% at random", async () => {
    for (const [random, delayMs] of [
      [0, 10 * 60 * MINUTE],
      [0.5, 9.5 * 60 * MINUTE],
      [0.999, 9.01 * 60 * MINUTE],
    ] as const) {
      const { observe, settle, nextIn } = createBed({ random: () => random });
      observe();
      await settle();
      assert.is(Math.round(nextIn()!), Math.round(delayMs));
    }
  });
});
