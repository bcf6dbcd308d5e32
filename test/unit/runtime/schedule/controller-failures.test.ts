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

suite("controller: events after a failure", (test) => {
  test("events of secondaries wait for the retry, and cause no run of their own", async () => {
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

  test("an event while a reconcile fails uses up an attempt, unless it is an edit", async () => {
    const { observe, observeSecondary, settle, started, hold, nextIn } = createBed();
    const finish = hold();
    observe();
    await settle();
    observeSecondary();
    await finish(failureOf());
    assert.equal([started.length, nextIn()], [1, 2000]);
  });

  test("a new generation and the mark of a deletion run at once", async () => {
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

  test("an update that is no edit waits like an event of a secondary", async () => {
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
    test(`where the retry is far or there is none (${error.name}), events wait 3 s at first and 15 s in the end`, async () => {
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

  test("after the pause an event runs at once", async () => {
    const { observe, observeSecondary, settle, advance, times, respond } = createBed({ retry: { maxRetries: 0 } });
    respond(() => failureOf());
    observe();
    await settle();
    await advance(5000);
    observeSecondary();
    await settle();
    assert.equal(times(), [0, 5000]);
  });

  test("however events come, runs that fail keep the distance of the retry or of the pause, and none is lost", async () => {
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

suite("controller: what is given up", (test) => {
  test("a primary without a quick retry left is shown with its last error until it succeeds or goes", async () => {
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

  test("ten of many are named, and all are counted", async () => {
    const { observe, settle, controller, respond } = createBed({ retry: { maxRetries: 0 } });
    respond(() => failureOf());
    for (let index = 0; index < 30; index++) observe({ name: `page-${index}` });
    await settle();
    assert.equal([givenUpOf(controller.primaries).count, givenUpOf(controller.primaries).primaries.length], [30, 10]);
  });
});

suite("controller: reschedules at once", (test) => {
  const atOnce: { readonly [what: string]: readonly [outcome: PrimaryOutcome, retry?: Retry] } = {
    "a rescheduleAfterMs": [{ ...SUCCESS, rescheduleAfterMs: 0 }],
    "a RetryAfterError": [failureOf(new RetryAfterError("now", 0))],
    "a retry of the user": [failureOf(), { next: () => ({ attempt: 1, intervalMs: 0 }), isLastAttempt: () => false }],
  };
  for (const [what, [outcome, retry]] of Object.entries(atOnce))
    test(`of ${what} ten in a row are free, further ones wait longer up to a second, and one warning says so`, async () => {
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

  test("a reschedule of 100 ms keeps its time, however often it is asked for", async () => {
    const { observe, settle, advance, times, lines, respond } = createBed();
    respond(() => ({ ...SUCCESS, rescheduleAfterMs: 100 }));
    observe();
    await settle();
    for (let index = 0; index < 40; index++) await advance(100);
    assert.equal([times().length, lines.length], [41, 0]);
  });

  test("a reconcile that asks for none, or for a later one, has ten free ones again", async () => {
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

  test("an edit does not wait for a reschedule that is slowed down", async () => {
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

suite("controller: the timeout of a reconcile", (test) => {
  test("after half an hour the signal is aborted, and a line says so", async () => {
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

  test("0 means no timeout", async () => {
    const { observe, settle, advance, started, hold } = createBed({ reconcileTimeoutMs: 0 });
    hold();
    observe();
    await settle();
    await advance(600 * MINUTE);
    assert.not(started[0]!.scope.signal.aborted);
  });

  test("a reconcile that never ends loses its place, and its primary is not reconciled beside it", async () => {
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

  test("a reconcile that lost its place is waited for before the next start", async () => {
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

suite("controller: a primary that is deleted while it is reconciled", (test) => {
  const DELETING = { deletionTimestamp: "2026-11-21T00:00:00Z" };

  test("the reconcile is ended by its signal, and the cleanup follows at once", async () => {
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

  test("a primary that is gone ends its reconcile, and one whose deletion a filter rejects does not", async () => {
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

  test("where deletions are reconciled, the reconcile before goes on", async () => {
    const { observe, observeDeletion, settle, started, hold } = createBed({ onAllEvents: true });
    hold();
    observe();
    await settle();
    observe(DELETING);
    observeDeletion();
    assert.not(started[0]!.scope.signal.aborted);
  });
});

suite("controller: the longest interval", (test) => {
  test("is up to a tenth shorter at random, so that primaries do not come back at once", async () => {
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
