import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { RetryAfterError, TerminalError } from "#runtime/base/errors.js";
import { Controller } from "#runtime/reconcile/controller.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { ReconcileEvent } from "#runtime/reconcile/reconcile-event.js";
import { createView } from "../../../support/resource-view.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/virtual-clock.js";
import { page } from "../workflow/graphs.js";

const KEY = "home/one";

/** A controller without dependents on a clock that stands still. */
function createController(reconcile: () => unknown, more: Partial<ControllerDefinition> = {}) {
  const clock = new VirtualClock();
  const { view, cache: primaries } = createView({ definition: page });
  const events: ReconcileEvent[] = [];
  const times: number[] = [];
  const silent = () => {};
  const definition = {
    name: "page",
    workflow: { primary: page, dependents: [] },
    reconciler: { reconcile: () => (times.push(clock.now()), reconcile()) } as never,
    ...more,
  };
  const controller = new Controller(definition, {
    client: undefined as never,
    primaries: view,
    sources: [],
    writer: undefined as never,
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    observer: (event) => void events.push(event),
    clock,
  });
  view.onChange((change) => controller.onPrimaryChange(change));
  controller.start();
  let version = 0;
  const observe = (generation: number, metadata: object = {}) => {
    const resourceVersion = `${++version}`;
    const named = { name: "one", namespace: "home", uid: "u1", generation, resourceVersion, ...metadata };
    primaries.observe({ object: { apiVersion: "example.com/v1", kind: "Page", metadata: named } as KubernetesObject });
  };
  /** Lets everything that is due run to its end. */
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const advance = async (ms: number) => {
    clock.advance(ms);
    await settle();
  };
  return { controller, clock, events, times, primaries, observe, settle, advance };
}

const fail = () => {
  throw new Error("no");
};

suite("controller", (test) => {
  test("a failing reconcile is tried again after 2, 2, 3, 4.5 and 6.75 s, then at the longest interval", async () => {
    const { observe, settle, advance, times } = createController(fail);
    observe(1);
    await settle();
    for (let second = 0; second < 80; second++) await advance(250);
    assert.equal(times, [0, 2000, 4000, 7000, 11_500, 18_250]);
    await advance(10 * 60 * 60 * 1000);
    assert.is(times.length, 7);
  });

  test("a success starts the retries afresh", async () => {
    let fails = true;
    const { observe, settle, advance, events } = createController(() => (fails ? fail() : undefined));
    observe(1);
    await settle();
    await advance(2000);
    await advance(2000);
    fails = false;
    await advance(3000);
    fails = true;
    observe(2);
    await settle();
    assert.equal(
      events.map(({ retryAfterMs }) => retryAfterMs),
      [2000, 2000, 3000, undefined, 2000],
    );
  });

  test("a change during a long wait runs at once, and keeps the time of the retry and the attempts that are left", async () => {
    const { observe, settle, advance, times } = createController(fail, {
      retry: { initialIntervalMs: 60_000, maxIntervalMs: 60_000, maxAttempts: 2 },
    });
    observe(1);
    await settle();
    for (let generation = 2; generation < 8; generation++) {
      await advance(1000);
      observe(generation);
      await settle();
    }
    assert.equal(times, [0, 1000, 2000, 3000, 4000, 5000, 6000]);
    await advance(54_000);
    assert.is(times.at(-1), 60_000, "the retry comes when it was due");
    await advance(60_000);
    assert.is(times.at(-1), 120_000, "one attempt was left");
  });

  test("a RetryAfterError says when, and uses up no attempt", async () => {
    const { observe, settle, advance, times, events } = createController(() => {
      throw new RetryAfterError("later", 500);
    });
    observe(1);
    await settle();
    for (let index = 0; index < 10; index++) await advance(500);
    assert.is(times.length, 11);
    assert.ok(events.every(({ retryAfterMs }) => retryAfterMs === 500));
  });

  test("a TerminalError is not tried again before something changes", async () => {
    const { observe, settle, advance, times } = createController(() => {
      throw new TerminalError("never");
    });
    observe(1);
    await settle();
    await advance(60_000);
    assert.is(times.length, 1);
    observe(2);
    await settle();
    assert.is(times.length, 2);
  });

  test("what leaves the generation as it is is passed over, but for a deletion and another object of the name", async () => {
    const { observe, settle, times, events } = createController(() => undefined);
    observe(1);
    await settle();
    observe(1, { labels: { a: "b" } });
    await settle();
    assert.is(times.length, 1);
    observe(2);
    await settle();
    assert.is(times.length, 2);
    observe(1, { uid: "u2" });
    await settle();
    assert.is(times.length, 3);
    observe(1, { uid: "u2", deletionTimestamp: "now", finalizers: ["example.com/x"] });
    await settle();
    assert.is(events.at(-1)?.kind, "cleanup");
  });

  test("with isGenerationAware false every change counts", async () => {
    const { observe, settle, times } = createController(() => undefined, { isGenerationAware: false });
    observe(1);
    await settle();
    observe(1);
    await settle();
    assert.is(times.length, 2);
  });

  test("a primary is reconciled again after the longest interval, and when the reconciler asks", async () => {
    let rescheduleAfterMs: number | undefined = 300;
    const { observe, settle, advance, times } = createController(() => ({ rescheduleAfterMs }), {
      maxReconciliationIntervalMs: 1000,
    });
    observe(1);
    await settle();
    await advance(300);
    rescheduleAfterMs = undefined;
    await advance(300);
    await advance(1000);
    assert.equal(times, [0, 300, 600, 1600]);
  });

  test("a deleted primary is forgotten with everything that waits", async () => {
    const { observe, settle, advance, times, primaries, clock } = createController(fail);
    observe(1);
    await settle();
    primaries.observeDeletion({
      ...primaries.get(KEY)!.object,
      metadata: { ...primaries.get(KEY)!.object.metadata, resourceVersion: "9" },
    });
    await advance(60_000);
    assert.is(times.length, 1);
    assert.is(clock.nextDueAt, undefined);
  });

  test("no more run at once than allowed, and the others follow", async () => {
    const release: (() => void)[] = [];
    const { observe, settle, times } = createController(() => new Promise<void>((resolve) => release.push(resolve)), {
      maxConcurrentReconciles: 2,
    });
    for (const name of ["a", "b", "c"]) observe(1, { name });
    await settle();
    assert.is(times.length, 2);
    release[0]!();
    await settle();
    assert.is(times.length, 3);
  });
});
