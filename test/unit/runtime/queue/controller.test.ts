import { assert, suite } from "../../../support/suite.js";
import { createBed, failureOf, KEY } from "./controller-bed.js";

const NOTHING = { states: 0, timers: 0, queued: 0, running: 0 };

suite("controller", (test) => {
  test("drops a deleted primary with its pending retry", async () => {
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

  test("logs the failure of a primary deleted meanwhile at debug level and does not retry it", async () => {
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
      [
        ["info", 'Page "home/one" was deleted or is no longer watched'],
        ["debug", 'Page "home/one" was deleted during its reconcile: no'],
      ],
    );
  });

  test("reconciles a primary recreated during a reconcile afterwards, with a new retry state", async () => {
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

  test("forgets a primary that was replaced without a deletion event", async () => {
    const { observe, settle, started, respond, released } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    observe({ uid: "u2" });
    await settle();
    assert.equal(released, [KEY]);
    assert.is(started.at(-1)?.attempt, 0);
  });

  test("limits concurrent reconciles to maxConcurrentReconciles", async () => {
    const { observe, settle, started, hold } = createBed({ maxConcurrentReconciles: 2 });
    const finish = hold();
    for (const name of ["a", "b", "c"]) observe({ name });
    await settle();
    assert.is(started.length, 2);
    await finish();
    assert.is(started.length, 3);
  });

  test("limits concurrent reconciles to 50 by default, independently of other controllers", async () => {
    const busy = createBed({ maxConcurrentReconciles: 1 });
    busy.hold();
    const { observe, settle, started, hold } = createBed();
    hold();
    for (const bed of [busy, { observe }]) for (let index = 0; index < 60; index++) bed.observe({ name: `p${index}` });
    await busy.settle();
    await settle();
    assert.equal([busy.started.length, started.length], [1, 50]);
  });

  test("reconciles edits before the initial list", async () => {
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
});

suite("reentrant events", (test) => {
  test("of a filter for its own primary trigger no concurrent reconcile", async () => {
    let isAsked = false;
    const tellOnce = () => {
      if (!isAsked) {
        isAsked = true;
        bed.observeSecondary();
      }
      return true;
    };
    const bed = createBed({ filters: { onAdd: tellOnce } });
    const finish = bed.hold();
    bed.observe();
    await bed.settle();
    assert.equal([isAsked, bed.started.length], [true, 1]);
    assert.equal(bed.controller.counts(), { ...NOTHING, states: 1, running: 1 });
    bed.observeDeletion();
    await finish();
    assert.equal(bed.controller.counts(), NOTHING);
  });
});

suite("errors in user code", (test) => {
  const broken = () => {
    throw new Error("broken");
  };

  test("of an observer are logged and ignored", async () => {
    const { observe, settle, started, controller, lines } = createBed({ observer: broken });
    observe();
    await settle();
    observe();
    await settle();
    assert.is(started.length, 2);
    assert.is(controller.counts().running, 0);
    assert.is(lines[0]?.message, "the observer of reconciles failed: broken");
  });

  test("of a rate limiter are logged, and reconciles are not limited", async () => {
    const { observe, settle, started, lines } = createBed({ rateLimit: () => ({ take: broken }) });
    observe();
    await settle();
    assert.is(started.length, 1);
    assert.is(lines[0]?.message, "custom rate limiter failed, reconciling without a limit: broken");
  });
});

suite("pause and stop of a controller", (test) => {
  test("starts no reconcile while paused, and all pending ones after resume", async () => {
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

  test("finishes a running reconcile while paused, and reconciles its primary after resume", async () => {
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

  test("runs retries that became due while paused after resume, and keeps the time of others", async () => {
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

  test("forgets primaries of a namespace that is no longer watched on resume", async () => {
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

  test("reconciles a deletion after resume with onAllEvents", async () => {
    const { observe, observeDeletion, settle, started, controller } = createBed({ onAllEvents: true });
    observe();
    await settle();
    controller.pause();
    observeDeletion();
    controller.resume();
    await settle();
    assert.ok(started[1]?.scope.isPrimaryDeleted);
    assert.equal(controller.counts(), NOTHING);
  });

  test("waits for running reconciles until the timeout of stop, then aborts their signals", async () => {
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
