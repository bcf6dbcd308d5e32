import type { EventDraft } from "#runtime/base/activity.js";
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { StalledPrimaries } from "#runtime/reconcile/primary-events.js";
import type { ReconcileEvent } from "#runtime/queue/controller.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { assert, suite } from "../../../support/suite.js";

const MINUTE = 60_000;
const key = "home/page" as ObjectKey;
const FINALIZER = "pages.example.com/finalizer";
const page = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "page", namespace: "home" } };
const deleted = { ...page.metadata, deletionTimestamp: "2026-11-29T00:00:00Z", finalizers: [FINALIZER] };
const waiting = { isReady: false, dependents: { web: { kind: "waiting", for: ["settings"] } } };

function start(primary: KubernetesObject | undefined = page) {
  const clock = new VirtualClock();
  const recorded: EventDraft[] = [];
  const state: { primary: KubernetesObject | undefined } = { primary };
  const stalled = new StalledPrimaries({
    ...{ controller: "page", clock },
    events: { record: (_, draft) => void recorded.push(draft) },
    find: () => state.primary,
    isHeld: ({ metadata }) => metadata.finalizers?.includes(FINALIZER) === true,
  });
  return {
    ...{ clock, state, stalled },
    end: (event: object = {}) =>
      stalled.onReconciled({ primary: key, kind: "reconcile", ...event } as unknown as ReconcileEvent),
    notes: () => recorded.splice(0).map(({ reason, note }) => `${reason}: ${note}`),
  };
}

suite("StalledPrimaries", (test) => {
  test("records an Event after 10 minutes and then every 30 minutes, with the latest result", () => {
    const { clock, end, notes } = start();
    end({ error: new Error("apply failed: 403") });
    clock.advance(5 * MINUTE);
    end({ workflow: waiting });
    assert.equal(notes(), []);
    clock.advance(5 * MINUTE);
    assert.equal(notes(), ["Stalled: home/page has not been ready for 10 min: web: waits for settings"]);
    clock.advance(29 * MINUTE);
    assert.equal(notes(), []);
    clock.advance(2 * MINUTE);
    assert.equal(notes().length, 1);
  });

  test("records no Event for ready, deleted or paused primaries, or in a terminating namespace", () => {
    const ready = start();
    ready.end({ workflow: waiting });
    ready.end({ workflow: { isReady: true, dependents: {} } });
    const gone = start();
    gone.end({ workflow: waiting });
    gone.stalled.forget(key);
    const unknown = start();
    unknown.end({ workflow: waiting });
    unknown.state.primary = undefined;
    const paused = start({
      ...page,
      metadata: { ...page.metadata, annotations: { "gen-operator.dev/paused": "true" } },
    });
    paused.end({ workflow: waiting });
    const ending = start();
    ending.end({ error: new Error("x"), isNamespaceTerminating: true });
    const ended = start();
    ended.end({ error: new Error("x"), isEnded: true });
    for (const { clock, notes } of [ready, gone, unknown, paused, ending, ended]) {
      clock.advance(60 * MINUTE);
      assert.equal(notes(), []);
    }
    for (const { clock } of [ready, gone, unknown, ending, ended]) assert.is(clock.nextDueAt, undefined);
  });

  test("records an Event for a stalled cleanup, but not for foreign finalizers", () => {
    const held = start({ ...page, metadata: deleted });
    held.end({ kind: "cleanup", workflow: waiting });
    held.clock.advance(10 * MINUTE);
    assert.equal(held.notes(), ["Stalled: home/page has not been cleaned up for 10 min: web: waits for settings"]);
    const others = start({ ...page, metadata: { ...deleted, finalizers: ["example.com/other"] } });
    others.end({ kind: "cleanup" });
    others.clock.advance(10 * MINUTE);
    assert.equal(others.notes(), []);
  });

  test("leaves no timer after close(), even if a reconcile ends later", () => {
    const { clock, end, stalled } = start();
    end({ workflow: waiting });
    stalled.close();
    end({ error: new Error("the operator stops") });
    assert.is(clock.nextDueAt, undefined);
  });
});
