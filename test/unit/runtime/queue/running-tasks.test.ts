import { RunningTasks } from "#runtime/base/user-calls.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";

function createTasks() {
  const clock = new VirtualClock();
  const warnings: string[] = [];
  const logger = {
    debug() {},
    info() {},
    warn: (_: object, message: string) => void warnings.push(message),
    error() {},
  };
  return { clock, warnings, tasks: new RunningTasks({ logger, clock }) };
}

suite("RunningTasks", (test) => {
  test("warns every 30 s about a function that does not return, and about no others", async () => {
    const { clock, warnings, tasks } = createTasks();
    void tasks.track('desired() of dependent "hung"', () => new Promise(() => {}));
    await tasks.track("the reconciler", () => "done");
    clock.advance(29_999);
    assert.equal(warnings, []);
    clock.advance(30_001);
    assert.equal(warnings, [
      'desired() of dependent "hung" has not returned for 30 s; this primary is not reconciled until it does',
      'desired() of dependent "hung" has not returned for 60 s; this primary is not reconciled until it does',
    ]);
    tasks.close();
    assert.is(clock.nextDueAt, undefined);
  });

  test("passes through the result or error of a function and stops tracking it", async () => {
    const { clock, warnings, tasks } = createTasks();
    assert.is(await tasks.track("one", () => 1), 1);
    const failed = await tasks
      .track("two", () => {
        throw new Error("no");
      })
      .catch((error: unknown) => (error as Error).message);
    assert.is(failed, "no");
    clock.advance(60_000);
    assert.equal(warnings, []);
    tasks.close();
  });
});
