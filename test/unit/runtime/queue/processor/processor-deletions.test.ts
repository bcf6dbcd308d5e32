// JOSDK's EventProcessorTest where deletions are reconciled, too; (n) is the number of a test there.
import { TerminalError } from "#runtime/base/errors.js";
import { assert, suite } from "../../../../support/suite.js";
import { createBed, failureOf, KEY, SUCCESS } from "../controller-bed.js";

const ALL_EVENTS = { onAllEvents: true } as const;

suite("processor with onAllEvents", (test) => {
  test("reconciles a deletion with the last known state and then drops all state [27, 29, 34]", async () => {
    const { observe, observeDeletion, settle, started, controller, released } = createBed(ALL_EVENTS);
    const object = observe();
    await settle();
    assert.not(started[0]?.scope.isPrimaryDeleted);
    observeDeletion(KEY, { isFinalStateUnknown: true });
    await settle();
    assert.is(started.length, 2);
    assert.is(started[1]?.object, object);
    assert.ok(started[1]?.scope.isPrimaryDeleted);
    assert.ok(started[1]?.scope.isFinalStateUnknown);
    assert.equal(controller.counts(), { states: 0, timers: 0, queued: 0, running: 0 });
    assert.equal(released, [KEY]);
  });

  test("coalesces an event and a deletion into one reconcile [28]", async () => {
    const { observe, observeDeletion, settle, started } = createBed(ALL_EVENTS);
    observe();
    observeDeletion();
    await settle();
    assert.equal(
      started.map(({ scope }) => scope.isPrimaryDeleted),
      [true],
    );
  });

  test("reconciles a deletion during a reconcile immediately afterwards, even if that fails", async () => {
    for (const outcome of [SUCCESS, failureOf()]) {
      const { observe, observeDeletion, settle, started, hold, controller } = createBed(ALL_EVENTS);
      const finish = hold();
      observe();
      await settle();
      observeDeletion();
      assert.ok(started[0]!.scope.isNextReconcileImminent());
      await finish(outcome);
      assert.is(started[1]?.scope.isPrimaryDeleted, true);
      assert.not(started[1]?.scope.isNextReconcileImminent());
      await finish();
      assert.is(controller.counts().states, 0);
    }
  });

  test("retries the failed reconcile of a deletion [30]", async () => {
    const { observe, observeDeletion, settle, started, respond, advance, controller } = createBed(ALL_EVENTS);
    observe();
    await settle();
    respond(() => failureOf());
    observeDeletion();
    await settle();
    respond(() => SUCCESS);
    await advance(2000);
    assert.equal(
      started.map(({ scope, attempt }) => [scope.isPrimaryDeleted, attempt]),
      [
        [false, 0],
        [true, 0],
        [true, 1],
      ],
    );
    assert.is(controller.counts().states, 0);
  });

  test("coalesces an event into the pending retry of a deletion [31]", async () => {
    const { observe, observeDeletion, observeSecondary, settle, started, respond, advance } = createBed(ALL_EVENTS);
    observe();
    await settle();
    respond(() => failureOf());
    observeDeletion();
    await settle();
    observeSecondary();
    await settle();
    assert.is(started.length, 2);
    await advance(2000);
    assert.is(started.length, 3);
    assert.ok(started[2]?.scope.isPrimaryDeleted);
    assert.equal(
      started[2]?.scope.reasons.map(({ kind }) => kind),
      ["secondary", "retry"],
    );
  });

  test("reconciles an event of a deletion after all retries [32]", async () => {
    const { observe, observeDeletion, observeSecondary, settle, started, respond, advance, controller } = createBed({
      ...ALL_EVENTS,
      retry: { maxRetries: 1 },
    });
    observe();
    await settle();
    respond(() => failureOf());
    observeDeletion();
    await settle();
    await advance(2000);
    assert.is(started.length, 3);
    assert.is(controller.counts().states, 1);
    respond(() => SUCCESS);
    observeSecondary();
    await advance(4500);
    assert.is(started.length, 4);
    assert.ok(started[3]?.isLastAttempt);
    assert.is(controller.counts().states, 0);
  });

  test("applies the rate limit to deletions [33]", async () => {
    const { observe, observeDeletion, settle, times, advance, controller } = createBed({
      ...ALL_EVENTS,
      rateLimit: { maxReconciliations: 1, withinMs: 1000 },
    });
    observe();
    await settle();
    observeDeletion();
    await advance(1000);
    assert.equal(times(), [0, 1000]);
    assert.is(controller.counts().states, 0);
  });

  test("does not reconcile a deletion twice if an event arrives meanwhile", async () => {
    const { observe, observeDeletion, observeSecondary, settle, started, hold, controller } = createBed(ALL_EVENTS);
    observe();
    await settle();
    const finish = hold();
    observeDeletion();
    await settle();
    observeSecondary();
    assert.ok(started[1]!.scope.isNextReconcileImminent());
    await finish();
    assert.is(started.length, 2);
    assert.is(controller.counts().states, 0);
  });

  test("reconciles a recreated primary first as deleted, then in its new state", async () => {
    const { observe, observeDeletion, settle, started, cache } = createBed(ALL_EVENTS);
    observe();
    await settle();
    observeDeletion();
    observe({ uid: "u2" });
    await settle();
    observe({ uid: "u3" });
    await settle();
    const seen = started.map(({ object, scope }) => [object.metadata.uid, scope.isPrimaryDeleted]);
    assert.equal(seen, [
      ["u1", false],
      ["u1", true],
      ["u2", false],
      ["u2", true],
      ["u3", false],
    ]);
    assert.is(cache.size, 1);
  });

  test("reconciles two deletions of the same name in order, regardless of the result of the first", async () => {
    for (const outcome of [SUCCESS, failureOf(new TerminalError("never"))]) {
      const { observe, observeDeletion, settle, started, hold, controller } = createBed(ALL_EVENTS);
      observe();
      await settle();
      const finish = hold();
      observeDeletion();
      await settle();
      observe({ uid: "u2" });
      observeDeletion();
      await finish(outcome);
      await finish();
      assert.equal(
        started.map(({ object }) => object.metadata.uid),
        ["u1", "u1", "u2"],
      );
      assert.is(controller.counts().states, 0);
    }
  });

  test("reconciles a recreated primary after a deletion that is not retried", async () => {
    const { observe, observeDeletion, settle, started, respond } = createBed({
      ...ALL_EVENTS,
      retry: { maxRetries: 0 },
    });
    observe();
    await settle();
    respond(({ isPrimaryDeleted }) => (isPrimaryDeleted ? failureOf() : SUCCESS));
    observeDeletion();
    await settle();
    observe({ uid: "u2" });
    await settle();
    assert.equal(
      started.map(({ object, scope }) => [object.metadata.uid, scope.isPrimaryDeleted]),
      [
        ["u1", false],
        ["u1", true],
        ["u1", true],
        ["u2", false],
      ],
    );
  });

  test("ignores a reschedule of a deleted primary with a warning", async () => {
    const { observe, observeDeletion, settle, respond, lines, controller } = createBed(ALL_EVENTS);
    observe();
    await settle();
    respond(() => ({ ...SUCCESS, rescheduleAfterMs: 100 }));
    observeDeletion();
    await settle();
    assert.equal(
      lines.map(({ level, message }) => `${level} ${message}`),
      ["warn a deleted primary is not reconciled again; its reschedule is ignored"],
    );
    assert.is(controller.counts().timers, 0);
  });
});
