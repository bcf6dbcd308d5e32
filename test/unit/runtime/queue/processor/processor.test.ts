// JOSDK's EventProcessorTest; (n) is the number of a test there. 27 to 34 are in processor-deletions.test.ts.
import { assert, suite } from "../../../../support/suite.js";
import { createBed, failureOf, KEY, SUCCESS } from "../controller-bed.js";

const TEN_HOURS = 10 * 60 * 60 * 1000;
const DELETING = { deletionTimestamp: "2026-11-21T00:00:00Z" };

suite("processor", (test) => {
  test("starts a reconcile for an event of an idle primary [1]", async () => {
    const { observe, settle, started } = createBed();
    observe();
    await settle();
    assert.equal([started.length, started[0]?.key], [1, KEY]);
  });

  test("skips a primary that is no longer in the cache and drops its state [2, 3]", async () => {
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

  test("does not notify the observer of a reconcile that never started [4]", async () => {
    const { observe, cache, settle, events } = createBed();
    observe();
    cache.clear();
    await settle();
    assert.equal(events, []);
  });

  test("coalesces events during a reconcile into one requeue [5]", async () => {
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

  test("retries the first failure after the initial interval [6, 24]", async () => {
    const { observe, settle, respond, nextIn } = createBed();
    respond(() => failureOf());
    observe();
    await settle();
    assert.is(nextIn(), 2000);
  });

  test("reconciles an edit during a failing reconcile immediately, without counting an attempt [7]", async () => {
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

  test("resets the retries after a success [8]", async () => {
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

  test("reconciles again after rescheduleAfterMs [9]", async () => {
    const { observe, settle, respond, nextIn, advance, started } = createBed();
    respond(() => ({ ...SUCCESS, rescheduleAfterMs: 10_000 }));
    observe();
    await settle();
    assert.is(nextIn(), 10_000);
    await advance(10_000);
    assert.equal(started.at(-1)?.scope.reasons, [{ kind: "reschedule" }]);
  });

  test("replaces a reschedule with an event that arrived meanwhile [10]", async () => {
    const { observe, settle, hold, times, controller } = createBed();
    const finish = hold();
    observe();
    await settle();
    observe();
    await finish({ ...SUCCESS, rescheduleAfterMs: 10_000 });
    assert.equal(times(), [0, 0]);
    assert.is(controller.counts().timers, 0);
  });

  test("reconciles nothing after stop() [11]", async () => {
    const { observe, settle, started, controller } = createBed();
    await controller.stop(0);
    observe();
    await settle();
    assert.is(started.length, 0);
  });

  test("cancels the pending retry after a success [12]", async () => {
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

  test("drops a secondary event of an unknown primary [13]", async () => {
    const { observeSecondary, settle, started, controller } = createBed();
    observeSecondary();
    await settle();
    assert.equal([started.length, controller.counts().states], [0, 0]);
  });

  test("reconciles a cached primary for a secondary event, unless its filters reject it [13]", async () => {
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

  test("coalesces events before the start into one reconcile per primary [14]", async () => {
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

  test("passes the cached object to the reconcile and does not modify the cache [15]", async () => {
    const { observe, settle, cache, started } = createBed();
    const object = observe();
    await settle();
    assert.is(cache.get(KEY)?.object, object);
    assert.is(started[0]?.object, object, "the reconcile sees what the cache has");
  });

  test("does not reconcile a primary again after its finalizer was removed, despite a reschedule [16]", async () => {
    const { observe, settle, respond, started, advance, controller } = createBed();
    respond(() => ({ ...SUCCESS, isFinalizerRemoved: true, rescheduleAfterMs: 100 }));
    observe(DELETING);
    await settle();
    assert.is(controller.counts().timers, 0);
    await advance(TEN_HOURS);
    assert.is(started.length, 1);
  });

  test("drops events of a primary whose finalizer was removed until it is deleted [17]", async () => {
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

  test("reconciles a recreated primary even if the deletion event was missed [18]", async () => {
    const { observe, settle, respond, started, cache } = createBed();
    respond(() => ({ ...SUCCESS, isFinalizerRemoved: true }));
    observe(DELETING);
    await settle();
    cache.clear();
    observe({ uid: "u2" });
    await settle();
    assert.is(started.length, 2);
  });

  test("reconciles a recreated primary with a deletionTimestamp, as its uid differs [18]", async () => {
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

  test("delays a rate-limited reconcile by at least 50 ms without losing it [19]", async () => {
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

  test("starts the resync interval after every success and after the last retry [20, 21]", async () => {
    const { observe, settle, respond, nextIn, advance, started } = createBed({ retry: { maxRetries: 0 } });
    observe();
    await settle();
    assert.is(nextIn(), TEN_HOURS);
    respond(() => failureOf());
    await advance(TEN_HOURS);
    assert.equal(started.at(-1)?.scope.reasons, [{ kind: "resync" }]);
    assert.is(nextIn(), TEN_HOURS);
  });

  test("keeps a retry that is due in more than 5 s and counts no attempt for an event [22]", async () => {
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

  test("replaces a retry that is due within 5 s with the next one [23]", async () => {
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

  test("starts no queued primary after stop() [25]", async () => {
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

  test("keeps no state of a primary created and deleted before the start [26]", async () => {
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
