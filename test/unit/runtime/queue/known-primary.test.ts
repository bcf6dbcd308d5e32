// JOSDK's TimerEventSourceTest.
import fc from "../../../support/fast-check.js";
import { createLogger } from "#runtime/base/logger.js";
import { NEW_STATE } from "#runtime/queue/processor.js";
import { KnownPrimary } from "#runtime/queue/controller.js";
import { scheduleOf } from "#runtime/queue/schedule-settings.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { page } from "../workflow/graphs.js";

/** Primaries on a clock that stands still, with a record of which was due when. */
function createTimers() {
  const clock = new VirtualClock();
  const fired: [string, number][] = [];
  const primaries = new Map<string, KnownPrimary>();
  const schedule = scheduleOf(
    { name: "page", workflow: { primary: page }, maxReconciliationIntervalMs: 0 },
    { clock, random: () => 0, logger: createLogger("error") },
  );
  const primaryOf = (key: string) => {
    const primary = primaries.get(key) ?? new KnownPrimary(key, NEW_STATE, { schedule, onDue });
    primaries.set(key, primary);
    return primary;
  };
  const onDue = ({ key }: KnownPrimary) => {
    fired.push([key, clock.now()]);
    timers.onDue();
  };
  const wake = (key: string, delayMs: number) => primaryOf(key).wakeAfter(delayMs);
  const timers = { clock, fired, wake, primaryOf, onDue: () => {} };
  return timers;
}

suite("timer of a primary", (test) => {
  test("fires once per schedule", () => {
    const { clock, fired, wake, primaryOf } = createTimers();
    wake("a", 50);
    assert.ok(primaryOf("a").timer.isSet);
    clock.advance(500);
    assert.equal(fired, [["a", 50]]);
    assert.not(primaryOf("a").timer.isSet);
  });

  test("does not fire after cancel()", () => {
    const { clock, fired, wake, primaryOf } = createTimers();
    wake("a", 50);
    primaryOf("a").timer.cancel();
    primaryOf("a").timer.cancel();
    assert.is(clock.nextDueAt, undefined);
    clock.advance(500);
    assert.equal(fired, []);
  });

  test("replaces the previous time with an earlier or later one", () => {
    const { clock, fired, wake } = createTimers();
    wake("later", 50);
    wake("later", 100);
    wake("earlier", 100);
    wake("earlier", 50);
    clock.advance(500);
    assert.equal(fired, [
      ["earlier", 50],
      ["later", 100],
    ]);
  });

  test("fires synchronously for a delay of 0 and replaces the previous time", () => {
    const { clock, fired, wake } = createTimers();
    wake("a", 50);
    wake("a", 0);
    assert.equal(fired, [["a", 0]]);
    clock.advance(500);
    assert.is(fired.length, 1);
  });

  test("can be scheduled again while it fires", () => {
    const timers = createTimers();
    const { clock, fired, wake } = timers;
    timers.onDue = () => {
      if (fired.length < 4) wake("a", 10);
    };
    wake("a", 10);
    clock.advance(100);
    assert.equal(
      fired.map(([, at]) => at),
      [10, 20, 30, 40],
    );
  });

  test("fires at the times of the latest schedules, in order, after any sequence of operations", () => {
    const key = fc.constantFrom("a", "b", "c", "d", "e");
    const step = fc.oneof(
      fc.record({ kind: fc.constant("schedule" as const), key, ms: fc.integer({ min: 1, max: 50 }) }),
      fc.record({ kind: fc.constant("cancel" as const), key, ms: fc.constant(0) }),
      fc.record({ kind: fc.constant("advance" as const), key, ms: fc.integer({ min: 0, max: 30 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: "max" }), (steps) => {
        const { clock, fired, wake, primaryOf } = createTimers();
        const waiting = new Map<string, number>();
        const expected: [string, number][] = [];
        for (const { kind, key: name, ms } of steps) {
          if (kind === "schedule") {
            wake(name, ms);
            waiting.set(name, clock.now() + ms);
          } else if (kind === "cancel") {
            primaryOf(name).timer.cancel();
            waiting.delete(name);
          } else {
            clock.advance(ms);
            for (const [due, at] of waiting)
              if (at <= clock.now()) {
                expected.push([due, at]);
                waiting.delete(due);
              }
          }
          assert.is(primaryOf(name).timer.isSet, waiting.has(name));
        }
        const times = fired.map(([, at]) => at);
        assert.equal(
          times,
          times.toSorted((a, b) => a - b),
          "in order",
        );
        const byTime = (all: [string, number][]) => all.map(([due, at]) => `${at} ${due}`).sort();
        assert.equal(byTime(fired), byTime(expected));
      }),
      { numRuns: runs(300) },
    );
  });
});
