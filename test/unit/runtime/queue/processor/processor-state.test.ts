// JOSDK's ResourceStateManagerTest.
import fc from "../../../../support/fast-check.js";
import type { ReconcileReason } from "#runtime/base/activity.js";
import {
  NEW_STATE,
  type PrimaryState,
  type ProcessorEvent,
  type ProcessorSettings,
  createRetry,
  priorityOf,
  transitionOf,
} from "#runtime/queue/processor.js";
import { assert, suite } from "../../../../support/suite.js";

const ALL_EVENTS = { onAllEvents: true } as const;
const RESYNCED = { resyncAfterMs: 60_000 } as const;
const settings: ProcessorSettings = { retry: createRetry(), resyncAfterMs: undefined, onAllEvents: false };
const reason: ReconcileReason = { kind: "primary", change: "updated", isInitial: false };
const changed: ProcessorEvent & { kind: "changed" } = {
  kind: "changed",
  reason,
  uid: "u1",
  isMarkedForDeletion: false,
  isEdit: true,
};
const secondary: ProcessorEvent & { kind: "secondary" } = {
  kind: "secondary",
  reason: { kind: "secondary", source: "web", isInitial: false },
  isKnown: false,
};
const deleted: ProcessorEvent & { kind: "deleted" } = {
  kind: "deleted",
  reason: { kind: "primary", change: "deleted", isInitial: false },
  entry: { object: { apiVersion: "v1", kind: "Page", metadata: { name: "one", uid: "u1" } } },
  isFinalStateUnknown: false,
  isKnown: false,
  isStarted: true,
};

const finished: ProcessorEvent & { kind: "finished" } = {
  kind: "finished",
  outcome: { isFinalizerRemoved: false },
  isEnded: false,
  now: 1000,
  entry: deleted.entry,
  isReplaced: false,
  isKnown: true,
};
const failed: ProcessorEvent = {
  ...finished,
  outcome: { ...finished.outcome, failure: { error: new Error("no"), isHandled: false } },
};
const anyEvent = fc.constantFrom<ProcessorEvent>(
  changed,
  { ...changed, isMarkedForDeletion: true },
  { ...changed, isEdit: false },
  secondary,
  { ...secondary, isKnown: true },
  deleted,
  { ...deleted, isKnown: true },
  { kind: "timer" },
  { kind: "limited", delayMs: 10 },
  { kind: "started" },
  { kind: "missed" },
  finished,
  { ...finished, isReplaced: true },
  { ...finished, isKnown: false },
  { ...finished, outcome: { ...finished.outcome, rescheduleAfterMs: 10 } },
  { ...finished, outcome: { ...finished.outcome, isFinalizerRemoved: true } },
  failed,
);

/** Returns what events lead to, one after the other. */
function after(events: readonly ProcessorEvent[], state?: PrimaryState, more: Partial<ProcessorSettings> = {}) {
  let current = state;
  for (const event of events) current = transitionOf(current, event, { ...settings, ...more }).state;
  return current;
}

suite("state of a primary", (test) => {
  test("waits only for the resync after a success without further events", () => {
    const running = after([changed, { kind: "started" }]);
    assert.equal(transitionOf(running, finished, { ...settings, ...RESYNCED }), {
      state: { ...NEW_STATE, timer: "resync" },
      effects: [{ kind: "scheduleResync" }],
    });
    assert.equal(transitionOf(running, finished, settings), { state: NEW_STATE, effects: [{ kind: "cancelTimer" }] });
  });

  test("starts without an event and then records one", () => {
    assert.is(NEW_STATE.eventing, "none");
    assert.is(after([changed])?.eventing, "event");
  });

  test("is created by an event of the primary, but not by one of a secondary", () => {
    assert.is(after([secondary]), undefined);
    assert.is(after([changed, secondary])?.reasons.length, 2);
  });

  test("gives a deletion precedence over an event", () => {
    assert.is(after([changed, deleted], undefined, ALL_EVENTS)?.eventing, "deleted");
    assert.is(after([changed, deleted]), undefined);
  });

  test("records an event after a deletion with onAllEvents", () => {
    const state = after([deleted, changed], undefined, ALL_EVENTS);
    assert.is(state?.eventing, "additionalAfterDelete");
    assert.is(after([{ kind: "started" }], state, ALL_EVENTS)?.eventing, "deleted");
  });

  test("treats an event after a deletion as another object without onAllEvents", () => {
    const state = after([changed, { kind: "started" }, deleted, changed]);
    assert.is(state?.eventing, "event");
    assert.is(after([changed, { kind: "started" }, deleted, secondary])?.eventing, "deleted");
  });

  test("clears the event and its reasons when a reconcile starts", () => {
    const state = after([changed, { kind: "started" }]);
    assert.equal([state?.eventing, state?.reasons, state?.priority], ["none", [], "background"]);
  });

  test("keeps at most 8 distinct reasons and the highest priority", () => {
    const resync: ReconcileReason = { kind: "primary", change: "added", isInitial: true };
    assert.is(priorityOf(resync), "background");
    const initial: ProcessorEvent = {
      kind: "changed",
      reason: resync,
      uid: "u1",
      isMarkedForDeletion: false,
      isEdit: true,
    };
    assert.is(after([initial, initial])?.priority, "background");
    const state = after([initial, changed, initial, changed]);
    assert.equal([state?.priority, state?.reasons.length], ["edit", 2]);
    const storm = Array.from({ length: 100 }, (_, index): ProcessorEvent => {
      const object = `home/${index}`;
      return { ...secondary, reason: { kind: "secondary", source: "web", object, isInitial: false } };
    });
    assert.is(after([changed, ...storm])?.reasons.length, 8);
  });

  test("is never mutated by a transition", () => {
    const fresh = structuredClone(NEW_STATE);
    const shared = [changed, { kind: "started" }, finished] as const;
    const states = () => shared.map((_, index) => after(shared.slice(0, index + 1), undefined, RESYNCED)!);
    const before = structuredClone(states());
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), fc.boolean(), (events, onAllEvents) => {
        const seen: [state: PrimaryState, copy: PrimaryState][] = [];
        let state: PrimaryState | undefined;
        for (const event of events) {
          state = transitionOf(state, event, { ...settings, ...RESYNCED, onAllEvents }).state;
          if (state !== undefined) seen.push([state, structuredClone(state)]);
        }
        for (const [known, copy] of seen) assert.equal(known, copy);
      }),
      { numRuns: 300 },
    );
    assert.equal(NEW_STATE, fresh);
    assert.equal(states(), before);
  });
});
