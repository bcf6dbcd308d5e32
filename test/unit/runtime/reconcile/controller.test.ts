import { ApiError, RetryAfterError, TerminalError } from "#runtime/base/errors.js";
import type { PrimaryOutcome } from "#runtime/reconcile/reconcile-scope.js";
import { assert, suite } from "../../../support/suite.js";
import { createBed, failureOf, KEY, SUCCESS } from "./controller-bed.js";

const NOTHING = { states: 0, timers: 0, queued: 0, running: 0 };

suite("controller: retries", (test) => {
  test("a failing reconcile is tried again after 2, 2, 3, 4.5 and 6.75 s, then at the longest interval", async () => {
    const { observe, settle, advance, times, respond } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    for (let second = 0; second < 80; second++) await advance(250);
    assert.equal(times(), [0, 2000, 4000, 7000, 11_500, 18_250]);
    await advance(10 * 60 * 60 * 1000);
    assert.is(times().length, 7);
  });

  test("a success starts the retries afresh", async () => {
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

  test("changes during a long wait run at once, and keep the time of the retry and the attempts that are left", async () => {
    const { observe, settle, advance, times, respond } = createBed({
      retry: { initialIntervalMs: 60_000, maxIntervalMs: 60_000, maxAttempts: 2 },
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

  test("when no retry is left, later events are reconciled as the last attempt until one succeeds", async () => {
    const { observe, settle, advance, started, respond } = createBed({ retry: { maxAttempts: 1 } });
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

  test("a RetryAfterError says when, and uses up no attempt", async () => {
    const { observe, settle, advance, times, events, respond } = createBed();
    respond(() => failureOf(new RetryAfterError("later", 500)));
    observe();
    await settle();
    for (let index = 0; index < 10; index++) await advance(500);
    assert.is(times().length, 11);
    assert.ok(events.every(({ retryAfterMs }) => retryAfterMs === 500));
  });

  test("a TerminalError is not tried again before something changes", async () => {
    const { observe, settle, advance, times, respond } = createBed();
    respond(() => failureOf(new TerminalError("never")));
    observe();
    await settle();
    await advance(60_000);
    assert.is(times().length, 1);
    observe();
    await settle();
    assert.is(times().length, 2);
  });

  test("a retry of the user decides with the error and what it said before", async () => {
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

  test("a reconcile that breaks its promise and throws is a failed one", async () => {
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

suite("controller: times", (test) => {
  test("a primary is reconciled again after the longest interval, and when the reconciler asks", async () => {
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

  test("0 asks for another reconcile at once, and no number for none", async () => {
    const { observe, settle, times, respond, started, lines, controller } = createBed({
      maxReconciliationIntervalMs: 0,
    });
    respond(() => (started.length < 3 ? { ...SUCCESS, rescheduleAfterMs: 0 } : { ...SUCCESS, rescheduleAfterMs: NaN }));
    observe();
    await settle();
    assert.equal(times(), [0, 0, 0]);
    assert.is(controller.counts().timers, 0);
    assert.is(lines.at(-1)?.message, "a reschedule after NaN ms is ignored");
  });

  test("what a reconcile waited for does not start another one while it runs", async () => {
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

  test("a rate limiter of the user is asked, one for each primary, and forgotten with it", async () => {
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

suite("controller: what is reconciled", (test) => {
  test("a deleted primary is forgotten with everything that waits", async () => {
    const { observe, observeDeletion, settle, advance, times, controller, clock, respond, released } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    observeDeletion();
    await advance(60_000);
    assert.is(times().length, 1);
    assert.is(clock.nextDueAt, undefined);
    assert.equal(controller.counts(), NOTHING);
    assert.equal(released, [KEY]);
  });

  test("the failure of a reconcile whose primary went meanwhile is told quietly and not retried", async () => {
    const { observe, observeDeletion, settle, hold, lines, controller, started } = createBed();
    const finish = hold();
    observe();
    await settle();
    observeDeletion();
    assert.not(started[0]!.scope.isNextReconcileImminent());
    await finish(failureOf());
    assert.equal(controller.counts(), NOTHING);
    assert.equal(
      lines.map(({ level, message }) => [level, message]),
      [["debug", "the primary went while it was reconciled: no"]],
    );
  });

  test("a primary made anew during a reconcile is reconciled afterwards, never beside it, and has its own retries", async () => {
    const { observe, observeDeletion, settle, hold, started, respond, advance, released } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    const finish = hold();
    await advance(2000);
    observeDeletion();
    observe({ uid: "u2" });
    await settle();
    assert.is(started.length, 2);
    await finish(failureOf());
    assert.equal(
      started.map(({ object, attempt }) => [object.metadata.uid, attempt]),
      [
        ["u1", 0],
        ["u1", 1],
        ["u2", 0],
      ],
    );
    assert.equal(released, [KEY]);
  });

  test("a primary that another one took the place of unseen is forgotten", async () => {
    const { observe, settle, started, respond, released } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    observe({ uid: "u2" });
    await settle();
    assert.equal(released, [KEY]);
    assert.is(started.at(-1)?.attempt, 0);
  });

  test("no more run at once than allowed, and the others follow", async () => {
    const { observe, settle, started, hold } = createBed({ maxConcurrentReconciles: 2 });
    const finish = hold();
    for (const name of ["a", "b", "c"]) observe({ name });
    await settle();
    assert.is(started.length, 2);
    await finish();
    assert.is(started.length, 3);
  });

  test("what somebody edits is reconciled before what a list brings", async () => {
    const { observe, settle, started, controller } = createBed({ isStarted: false });
    for (const name of ["a", "b"]) observe({ name }, { isInitial: true });
    observe({ name: "edited" });
    controller.start();
    await settle();
    assert.equal(
      started.map(({ key }) => key),
      ["home/edited", "home/a", "home/b"],
    );
  });

  test("a cache that keeps only a part of the primaries is asked to fetch one, and a failure to do so is retried", async () => {
    let fails = true;
    const bed = createBed({
      load: (keys) => {
        if (fails) return Promise.reject(new Error("unreachable"));
        for (const key of keys) evicted.set(key, kept!);
        return Promise.resolve();
      },
    });
    const object = bed.observe();
    const kept = bed.cache.get(KEY);
    const evicted = bed.cache;
    evicted.get = (key) => (fails || key !== KEY ? undefined : kept);
    await bed.settle();
    assert.is(bed.started.length, 0);
    assert.is((bed.events[0]?.error as Error).message, "unreachable");
    fails = false;
    await bed.advance(2000);
    assert.is(bed.started[0]?.object, object);
  });
});

suite("controller: pause and stop", (test) => {
  test("while paused nothing starts, and afterwards nothing is lost", async () => {
    const { observe, settle, started, controller } = createBed();
    observe();
    await settle();
    controller.pause();
    observe();
    observe({ name: "two" });
    await settle();
    assert.is(started.length, 1);
    controller.resume();
    await settle();
    assert.is(started.length, 3);
  });

  test("a reconcile that ends while paused is over, and its primary is reconciled again afterwards", async () => {
    const { observe, settle, started, controller, hold } = createBed();
    const finish = hold();
    observe();
    await settle();
    controller.pause();
    observe();
    await finish(failureOf());
    assert.equal([started.length, controller.counts().running], [1, 0]);
    controller.resume();
    await settle();
    assert.is(started.length, 2);
  });

  test("a retry that becomes due while paused comes afterwards, and one that is not due keeps its time", async () => {
    const { observe, settle, advance, times, controller, respond } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    controller.pause();
    await advance(3000);
    observe({ name: "two" });
    controller.resume();
    await settle();
    assert.equal(times(), [0, 3000, 3000]);
    controller.pause();
    controller.resume();
    await settle();
    assert.is(times().length, 3);
  });

  test("a primary of a namespace that is not watched any more is forgotten", async () => {
    const { observe, settle, controller, cache, hold } = createBed();
    observe();
    await settle();
    const finish = hold();
    observe({ name: "running" });
    await settle();
    controller.pause();
    cache.clear();
    controller.resume();
    assert.equal(controller.counts(), { ...NOTHING, states: 1, running: 1 });
    await finish();
    assert.equal(controller.counts(), NOTHING);
  });

  test("a deletion while paused is reconciled afterwards where deletions are", async () => {
    const { observe, observeDeletion, settle, started, controller } = createBed({ reconcilesOnAllEvents: true });
    observe();
    await settle();
    controller.pause();
    observeDeletion();
    controller.resume();
    await settle();
    assert.ok(started[1]?.scope.isPrimaryDeleted);
    assert.equal(controller.counts(), NOTHING);
  });

  test("the stop waits for reconciles under way until the deadline, then aborts their signal", async () => {
    const { observe, settle, started, controller, hold, clock, events, lines } = createBed();
    const finish = hold();
    observe();
    await settle();
    const stopped = controller.stop(100);
    assert.not(started[0]!.scope.signal.aborted);
    clock.advance(100);
    assert.is(await stopped, false);
    assert.ok(started[0]!.scope.signal.aborted);
    await finish(failureOf(new Error("aborted")));
    assert.equal([events.length, lines.length], [1, 0]);
  });
});

suite("controller: logs", (test) => {
  const conflict = new ApiError(409, { reason: "Conflict" });

  test("a failure is as loud as it is bad", async () => {
    const lastAttempt = { retry: { maxAttempts: 0 } };
    const given: [unknown, boolean, object, string][] = [
      [new Error("no"), false, {}, "warn"],
      [new Error("no"), false, lastAttempt, "error"],
      [new Error("no"), true, {}, "debug"],
      [new Error("no"), true, lastAttempt, "error"],
      [conflict, false, {}, "info"],
      [new AggregateError([conflict, conflict]), false, {}, "info"],
      [new AggregateError([conflict, new Error("no")]), false, {}, "warn"],
      [conflict, false, lastAttempt, "error"],
      [new TerminalError("never"), false, {}, "error"],
    ];
    for (const [error, isHandled, definition, level] of given) {
      const { observe, settle, respond, lines } = createBed(definition);
      respond(() => failureOf(error, isHandled));
      observe();
      await settle();
      assert.equal(
        lines.map((line) => line.level),
        [level],
        String(error),
      );
    }
  });

  test("the last failure is a warning if a new event gives another chance", async () => {
    const { observe, settle, hold, lines } = createBed({ retry: { maxAttempts: 0 } });
    const finish = hold();
    observe();
    await settle();
    observe();
    await finish(failureOf());
    assert.equal(
      lines.map(({ level }) => level),
      ["warn"],
    );
  });

  test("the lines of a reconcile say what is reconciled and why", async () => {
    const { observe, settle, respond, lines, advance } = createBed();
    respond(({ logger }) => {
      logger.info({ own: 1 }, "hello");
      return failureOf();
    });
    observe({ generation: 7 });
    await settle();
    await advance(2000);
    const { fields } = lines[0]!;
    const common = { controller: "page", kind: "Page", namespace: "home", name: "one", uid: "u1" };
    const scope = { ...common, resourceVersion: "1", generation: 7 };
    assert.equal(fields, { ...scope, reasons: ["primary added"], own: 1 });
    assert.equal(lines[1]?.fields, { ...scope, reasons: ["primary added"], retryAfterMs: 2000, attempt: 1 });
    assert.equal((lines[2]?.fields as { reasons: string[] }).reasons, ["retry 1"]);
  });

  test("an observer is told why a reconcile ran", async () => {
    const { observe, observeSecondary, settle, events, controller } = createBed();
    observe();
    observeSecondary();
    controller.onSecondaryChange([KEY], { source: "web", object: "home/web", isInitial: true });
    await settle();
    assert.equal(events[0]?.reasons, [
      { kind: "primary", change: "added", isInitial: false },
      { kind: "secondary", source: "web", isInitial: false },
      { kind: "secondary", source: "web", object: "home/web", isInitial: true },
    ]);
  });
});
