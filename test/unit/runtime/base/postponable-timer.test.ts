import fc from "../../../support/fast-check.js";
import { PostponableTimer } from "#runtime/base/wait.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";

suite("PostponableTimer", (test) => {
  test("fires once, at the last time that was set, and never after cancel()", () => {
    const step = fc.record({
      waitMs: fc.nat(20),
      setMs: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const clock = new VirtualClock();
        const rung: number[] = [];
        const timer = new PostponableTimer(clock, () => void rung.push(clock.now()));
        const expected: number[] = [];
        let dueAt: number | undefined;
        const settle = () => {
          if (dueAt === undefined || dueAt > clock.now()) return;
          expected.push(dueAt);
          dueAt = undefined;
        };
        for (const { waitMs, setMs } of steps) {
          clock.advance(waitMs);
          settle();
          if (setMs === undefined) timer.cancel();
          else timer.set(setMs);
          dueAt = setMs === undefined ? undefined : clock.now() + setMs;
          assert.is(timer.isSet, dueAt !== undefined);
        }
        clock.advance(100);
        settle();
        assert.equal(rung, expected);
        assert.is(timer.isSet, false);
      }),
    );
  });

  test("schedules no additional platform timer when it is postponed", () => {
    const clock = new VirtualClock();
    let scheduled = 0;
    const counted = {
      now: () => clock.now(),
      schedule: (delayMs: number, callback: () => void) => {
        scheduled++;
        return clock.schedule(delayMs, callback);
      },
    };
    const timer = new PostponableTimer(counted, () => {});
    for (let count = 0; count < 100; count++) {
      timer.set(1_000);
      clock.advance(5);
    }
    assert.is(scheduled, 1);
  });
});
