// JOSDK's EventProcessorTest; (n) is the number of a test there. 27 to 34 are in processor-deletions.test.ts.
import { assert, suite } from "../../../../support/suite.js";
import { createBed, failureOf, KEY, SUCCESS } from "../controller-bed.js";

const TEN_HOURS = 10 * 60 * 60 * 1000;
const DELETING = { deletionTimestamp: "2026-11-21T00:00:00Z" };

suite("processor", (test) => {
  test("(1) an event of a primary that is not being reconciled starts a reconcile", async () => {
    const { observe, settle, started } = createBed();
    observe();
    await settle();
    assert.equal([started.length, started[0]?.key], [1, KEY]);
  });

  test("(2, 3) a primary that is not in the cache when its turn comes is not reconciled, and nothing of it is kept", async () => {
    const { observe, cache, settle, started, controller } = createBed();
    observe();
    cache.clear();
    await settle();
    assert.is(started.length, 0);
    assert.equal(controller.counts(), { states: 0, timers: 0, queued: 0, running: 0 });
    observe();
    await settle();
    assert.is(started.length, 1, "it may come back");
  });

  test("(4) an observer is not told of a reconcile that never started", async () => {
    const { observe, cache, settle, events } = createBed();
    observe();
    cache.clear();
    await settle();
    assert.equal(events, []);
  });

  test("(5) any number of events while a primary is reconciled start exactly one reconcile afterwards", async () => {
    const { observe, observeSecondary, settle, started, hold } = createBed();
    const finish = hold();
    observe();
    await settle();
    for (let index = 0; index < 3; index++) {
      observe();
      observeSecondary();
    }
    await settle();
    assert.is(started.length, 1);
    await finish();
    assert.is(started.length, 2);
    await finish();
    assert.is(started.length, 2);
  });

  test("(6, 24) the first failure waits for the initial interval", async () => {
    const { observe, settle, respond, nextIn } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    assert.is(nextIn(), 2000);
  });

  test("(7) an edit while a reconcile fails is reconciled at once, and no attempt is used up", async () => {
    const { observe, settle, started, hold, nextIn } = createBed();
    const finish = hold();
    observe();
    await settle();
    observe();
    await finish(failureOf());
    assert.equal(
      started.map(({ attempt }) => attempt),
      [0, 0],
    );
    await finish(failureOf());
    assert.is(nextIn(), 2000, "the first attempt");
  });

  test("(8) a success resets the retries", async () => {
    const { observe, settle, started, respond, advance } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    respond(() => SUCCESS);
    await advance(2000);
    observe();
    await settle();
    assert.equal(
      started.map(({ attempt, isLastAttempt }) => [attempt, isLastAttempt]),
      [
        [0, false],
        [1, false],
        [0, false],
      ],
    );
  });

  test("(9) a reconcile that asks for another one gets it after its time", async () => {
    const { observe, settle, respond, nextIn, advance, started } = createBed();
    respond(() => ({ ...SUCCESS, rescheduleAfterMs: 10_000 }));
    observe();
    await settle();
    assert.is(nextIn(), 10_000);
    await advance(10_000);
    assert.equal(started.at(-1)?.scope.reasons, [{ kind: "reschedule" }]);
  });

  test("(10) an event that came meanwhile takes the place of what the reconcile asked for", async () => {
    const { observe, settle, hold, times, controller } = createBed();
    const finish = hold();
    observe();
    await settle();
    observe();
    await finish({ ...SUCCESS, rescheduleAfterMs: 10_000 });
    assert.equal(times(), [0, 0]);
    assert.is(controller.counts().timers, 0);
  });

  test("(11) nothing is reconciled after the stop", async () => {
    const { observe, settle, started, controller } = createBed();
    await controller.stop(0);
    observe();
    await settle();
    assert.is(started.length, 0);
  });

  test("(12) a success cancels the retry that was to come", async () => {
    const { observe, settle, respond, times, advance, controller } = createBed({ maxReconciliationIntervalMs: 0 });
    respond(() => failureOf());
    observe();
    await settle();
    assert.is(controller.counts().timers, 1);
    respond(() => SUCCESS);
    observe();
    await settle();
    assert.is(controller.counts().timers, 0);
    await advance(TEN_HOURS);
    assert.equal(times(), [0, 0]);
  });

  test("(13) an event of something that belongs to an unknown primary is dropped: the primary's own event will come", async () => {
    const { observeSecondary, settle, started, controller } = createBed();
    observeSecondary();
    await settle();
    assert.equal([started.length, controller.counts().states], [0, 0]);
  });

  test("(13) a primary that the cache knows is reconciled for what belongs to it, unless the user's filters reject it", async () => {
    const isOurs = ({ metadata }: { metadata: { name: string } }) => metadata.name === "one";
    const bed = createBed({ filters: { onAdd: isOurs } });
    for (const name of ["one", "other"]) {
      bed.cache.set(`home/${name}`, {
        object: { apiVersion: "example.com/v1", kind: "Page", metadata: { name, namespace: "home" } },
      });
      bed.observeSecondary(`home/${name}`);
    }
    await bed.settle();
    assert.equal(
      bed.started.map(({ key }) => key),
      ["home/one"],
    );
  });

  test("(14) events before the start are reconciled when it comes, once for each primary", async () => {
    const { observe, observeSecondary, settle, started, controller } = createBed({ isStarted: false });
    observe();
    observeSecondary();
    await settle();
    assert.is(started.length, 0);
    controller.start();
    await settle();
    assert.is(started.length, 1);
    assert.is(started[0]?.scope.reasons.length, 2);
  });

  test("(15) the processor reads the cache and writes nothing to it", async () => {
    const { observe, settle, cache, started } = createBed();
    const object = observe();
    await settle();
    assert.is(cache.get(KEY)?.object, object);
    assert.is(started[0]?.object, object, "the reconcile sees what the cache has");
  });

  test("(16) a primary whose finalizer was removed is not reconciled again, whatever the reconcile asked for", async () => {
    const { observe, settle, respond, started, advance, controller } = createBed();
    respond(() => ({ ...SUCCESS, isFinalizerRemoved: true, rescheduleAfterMs: 100 }));
    observe(DELETING);
    await settle();
    assert.is(controller.counts().timers, 0);
    await advance(TEN_HOURS);
    assert.is(started.length, 1);
  });

  test("(17) events of a primary whose finalizer was removed are dropped until it is gone", async () => {
    const { observe, observeSecondary, observeDeletion, settle, hold, started, controller, released } = createBed();
    const finish = hold();
    observe(DELETING);
    await settle();
    observeSecondary();
    await finish({ ...SUCCESS, isFinalizerRemoved: true });
    observe(DELETING);
    observeSecondary();
    await settle();
    assert.is(started.length, 1);
    observeDeletion();
    assert.is(controller.counts().states, 0);
    assert.equal(released, [KEY]);
  });

  test("(18) a primary made anew is reconciled though the deletion of the one before was missed", async () => {
    const { observe, settle, respond, started, cache } = createBed();
    respond(() => ({ ...SUCCESS, isFinalizerRemoved: true }));
    observe(DELETING);
    await settle();
    cache.clear();
    observe({ uid: "u2" });
    await settle();
    assert.is(started.length, 2);
  });

  test("(18) so is one that is being deleted itself: the uid decides", async () => {
    const { observe, settle, respond, started, cache } = createBed();
    respond(() => ({ ...SUCCESS, isFinalizerRemoved: true }));
    observe(DELETING);
    await settle();
    cache.clear();
    observe({ uid: "u2", ...DELETING });
    await settle();
    assert.equal(
      started.map(({ object }) => object.metadata.uid),
      ["u1", "u2"],
    );
  });

  test("(19) the rate limit delays a reconcile by 50 ms at least, and loses nothing", async () => {
    const { observe, settle, times, advance, nextIn } = createBed({
      rateLimit: { maxReconciliations: 1, withinMs: 1000 },
    });
    observe();
    await settle();
    await advance(400);
    observe();
    await settle();
    assert.is(nextIn(), 600);
    await advance(590);
    observe();
    await settle();
    await advance(49);
    assert.equal(times(), [0], "10 ms would be too short");
    await advance(1);
    assert.equal(times(), [0, 1040]);
  });

  test("(20, 21) the longest interval begins after every success and when no retry is left", async () => {
    const { observe, settle, respond, nextIn, advance, started } = createBed({ retry: { maxRetries: 0 } });
    observe();
    await settle();
    assert.is(nextIn(), TEN_HOURS);
    respond(() => failureOf());
    await advance(TEN_HOURS);
    assert.equal(started.at(-1)?.scope.reasons, [{ kind: "resync" }]);
    assert.is(nextIn(), TEN_HOURS);
  });

  test("(22) a retry that is more than 5 s away keeps its time, and no attempt is used up", async () => {
    const { observe, settle, respond, nextIn, advance, started } = createBed({
      retry: { initialIntervalMs: 60_000, maxIntervalMs: 60_000 },
    });
    respond(() => failureOf());
    observe();
    await settle();
    await advance(10_000);
    observe();
    await settle();
    assert.is(nextIn(), 50_000);
    await advance(50_000);
    assert.equal(
      started.map(({ attempt }) => attempt),
      [0, 1, 1],
    );
  });

  test("(23) a retry that is 5 s away or less is replaced by the next one", async () => {
    const { observe, settle, respond, times, advance, started } = createBed({
      retry: { initialIntervalMs: 60_000, maxIntervalMs: 60_000 },
    });
    respond(() => failureOf());
    observe();
    await settle();
    await advance(55_000);
    observe();
    await settle();
    await advance(59_999);
    assert.equal(times(), [0, 55_000]);
    await advance(1);
    assert.equal(times(), [0, 55_000, 115_000]);
    assert.is(started.at(-1)?.attempt, 2);
  });

  test("(25) what waits for a free place is not reconciled any more after the stop", async () => {
    const { observe, settle, started, hold, controller } = createBed({ maxConcurrentReconciles: 1 });
    const finish = hold();
    observe();
    observe({ name: "two" });
    await settle();
    const stopped = controller.stop(1000);
    await finish();
    assert.ok(await stopped);
    assert.is(started.length, 1);
  });

  test("(26) a primary that came and went before the start leaves nothing", async () => {
    for (const definition of [{}, { onAllEvents: true }]) {
      const { observe, observeDeletion, settle, started, controller } = createBed({ isStarted: false, ...definition });
      observe();
      observeDeletion();
      observe();
      observeDeletion();
      controller.start();
      await settle();
      assert.is(started.length, 0);
      assert.equal(controller.counts(), { states: 0, timers: 0, queued: 0, running: 0 });
    }
  });
});
