// JOSDK's TimerEventSourceTest, and what a heap has to keep.
import fc from "fast-check";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { KeyedTimers } from "./keyed-queues.js";

function createTimers() {
  const timers = new KeyedTimers();
  return { timers, clock: timers.clock, fired: timers.fired };
}

suite("timer queue", (test) => {
  test("a scheduled key is due once", () => {
    const { clock, fired, timers } = createTimers();
    timers.schedule("a", 50);
    clock.advance(500);
    assert.equal(fired, [["a", 50]]);
    assert.is(timers.size, 0);
  });

  test("a cancelled key is not due, and nothing waits for it", () => {
    const { clock, fired, timers } = createTimers();
    timers.schedule("a", 50);
    timers.cancel("a");
    timers.cancel("a");
    assert.is(clock.nextDueAt, undefined);
    clock.advance(500);
    assert.equal(fired, []);
  });

  test("the newest time replaces the one before, be it earlier or later", () => {
    const { clock, fired, timers } = createTimers();
    timers.schedule("later", 50);
    timers.schedule("later", 100);
    timers.schedule("earlier", 100);
    timers.schedule("earlier", 50);
    assert.is(timers.size, 2);
    clock.advance(500);
    assert.equal(fired, [
      ["earlier", 50],
      ["later", 100],
    ]);
  });

  test("a delay of 0 is due at once, before schedule returns, and replaces what was to come", () => {
    const { clock, fired, timers } = createTimers();
    timers.schedule("a", 50);
    timers.schedule("a", 0);
    assert.equal(fired, [["a", 0]]);
    clock.advance(500);
    assert.is(fired.length, 1);
  });

  test("a closed queue forgets what waits and takes nothing more", () => {
    const { clock, fired, timers } = createTimers();
    timers.schedule("a", 50);
    timers.close();
    timers.schedule("b", 50);
    timers.schedule("c", 0);
    assert.is(clock.nextDueAt, undefined);
    clock.advance(500);
    assert.equal(fired, []);
  });

  test("a key may be scheduled again while it is due", () => {
    const { clock, fired, timers } = createTimers();
    timers.onDue = (key) => {
      if (fired.length < 4) timers.schedule(key, 10);
    };
    timers.schedule("a", 10);
    clock.advance(100);
    assert.equal(
      fired.map(([, at]) => at),
      [10, 20, 30, 40],
    );
  });

  test("100,000 keys that are put off again and again need one timer of the clock and no more memory", () => {
    const { clock, fired, timers } = createTimers();
    for (let round = 0; round < 5; round++)
      for (let index = 0; index < 100_000; index++) timers.schedule(`${index}`, 1000 + round + (index % 7));
    assert.is(timers.size, 100_000);
    clock.advance(1003);
    assert.is(fired.length, 0);
    clock.advance(10);
    assert.is(fired.length, 100_000);
    assert.is(clock.nextDueAt, undefined);
  });

  test("any sequence of operations calls back at the times of the newest schedules, in order", () => {
    const key = fc.constantFrom("a", "b", "c", "d", "e");
    const step = fc.oneof(
      fc.record({ kind: fc.constant("schedule" as const), key, ms: fc.integer({ min: 1, max: 50 }) }),
      fc.record({ kind: fc.constant("cancel" as const), key, ms: fc.constant(0) }),
      fc.record({ kind: fc.constant("advance" as const), key, ms: fc.integer({ min: 0, max: 30 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: "max" }), (steps) => {
        const { clock, fired, timers } = createTimers();
        const waiting = new Map<string, number>();
        const expected: [string, number][] = [];
        for (const { kind, key: name, ms } of steps) {
          if (kind === "schedule") {
            timers.schedule(name, ms);
            waiting.set(name, clock.now() + ms);
          } else if (kind === "cancel") {
            timers.cancel(name);
            waiting.delete(name);
          } else {
            clock.advance(ms);
            for (const [due, at] of waiting)
              if (at <= clock.now()) {
                expected.push([due, at]);
                waiting.delete(due);
              }
          }
          assert.is(timers.size, waiting.size);
          assert.is(timers.dueAt(name), waiting.get(name));
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
