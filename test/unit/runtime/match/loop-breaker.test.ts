import fc from "fast-check";
import { LoopBreaker } from "#runtime/match/loop-breaker.js";
import { assert, suite } from "../../../support/suite.js";

/** Writes the same at these times, in seconds; the pauses that follow, 0 where it is no loop. */
function pausesOf(breaker: LoopBreaker, seconds: readonly number[], desired = "same"): number[] {
  return seconds.map((second) => breaker.noteWrite("object", desired, second * 1000)?.pauseMs ?? 0);
}

suite("loop breaker", (test) => {
  test("the third write of the same within a minute is a loop", () => {
    const breaker = new LoopBreaker();
    assert.is(breaker.noteWrite("object", "same", 0), undefined);
    assert.is(breaker.noteWrite("object", "same", 10), undefined);
    assert.equal(breaker.noteWrite("object", "same", 20), { writes: 3, isNew: true, pauseMs: 2_000 });
    assert.equal(breaker.noteWrite("object", "same", 30), { writes: 4, isNew: false, pauseMs: 4_000 });
  });

  test("an object is left alone until its pause is over, and what is not in a loop never is", () => {
    const breaker = new LoopBreaker();
    pausesOf(breaker, [0, 0]);
    assert.is(breaker.pauseOf("object", "same", 0), 0);
    pausesOf(breaker, [0]);
    assert.is(breaker.pauseOf("object", "same", 500), 1_500);
    assert.is(breaker.pauseOf("object", "same", 2_000), 0);
    assert.is(breaker.pauseOf("other", "same", 0), 0);
  });

  test("the pauses double up to a limit", () => {
    const breaker = new LoopBreaker({ initialPauseMs: 1_000, maxPauseMs: 5_000 });
    assert.equal(pausesOf(breaker, [0, 0, 0, 1, 3, 7, 12]), [0, 0, 1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  test("edits now and then are no loop", () => {
    assert.equal(pausesOf(new LoopBreaker(), [0, 31, 62, 93, 124, 155]), [0, 0, 0, 0, 0, 0]);
  });

  test("what changes is no loop, however often it is written", () => {
    const breaker = new LoopBreaker();
    for (let version = 0; version < 50; version++)
      assert.is(breaker.noteWrite("object", `version ${version % 2}`, version), undefined);
  });

  test("another desired state is written at once, and begins anew", () => {
    const breaker = new LoopBreaker();
    pausesOf(breaker, [0, 0, 0]);
    assert.is(breaker.pauseOf("object", "other", 0), 0);
    assert.equal(pausesOf(breaker, [0, 0, 0], "other"), [0, 0, 2_000]);
  });

  test("an object that is still as desired after a while is no loop any more", () => {
    const breaker = new LoopBreaker();
    pausesOf(breaker, [0, 0, 0]);
    breaker.noteMatch("object", 9_000);
    assert.ok(breaker.isSlowed("object"), "it was written just now, so that says nothing");
    breaker.noteMatch("object", 10_000);
    assert.not(breaker.isSlowed("object"));
    assert.equal(pausesOf(breaker, [10, 10]), [0, 0]);
  });

  test("a loop is forgotten if nothing has to be written for a minute after its pause", () => {
    const breaker = new LoopBreaker();
    assert.equal(pausesOf(breaker, [0, 0, 0, 62]), [0, 0, 2_000, 4_000]);
    assert.equal(pausesOf(breaker, [127]), [0]);
  });

  test("an object that is deleted on purpose is forgotten", () => {
    const breaker = new LoopBreaker();
    pausesOf(breaker, [0, 0, 0]);
    breaker.forget("object");
    assert.equal(pausesOf(breaker, [0, 0]), [0, 0]);
  });

  test("what was not written for a minute is dropped with the next write of anything", () => {
    const breaker = new LoopBreaker();
    for (let index = 0; index < 100; index++) breaker.noteWrite(`object ${index}`, "same", 0);
    assert.is(breaker.size, 100);
    breaker.noteWrite("late", "same", 60_001);
    assert.is(breaker.size, 1);
  });

  test("no more objects are kept than there is room for, the latest first", () => {
    const breaker = new LoopBreaker({ capacity: 10 });
    for (let write = 0; write < 3; write++) {
      for (let index = 0; index < 9; index++) breaker.noteWrite(`others ${write} ${index}`, "same", write);
      const loop = breaker.noteWrite("hot", "same", write);
      assert.is(loop?.isNew, write === 2 ? true : undefined);
      assert.is(breaker.size, 10);
    }
  });

  test("an opponent who answers every write gets few of them, whenever it answers", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 50, maxLength: 50 }), (answers) => {
        const breaker = new LoopBreaker();
        let now = 0;
        let writes = 0;
        for (const answerMs of answers) {
          // It is written as soon as that is allowed after the answer.
          now += answerMs;
          now += breaker.pauseOf("object", "same", now);
          breaker.noteWrite("object", "same", now);
          writes++;
          assert.is(breaker.size, 1);
        }
        // 2, 4, … 256, 300, 300 seconds: the first eight pauses are over after 510 s, and then there is one write in five minutes.
        assert.ok(now >= 510_000 + (writes - 11) * 300_000, `${writes} writes in ${now} ms`);
      }),
    );
  });
});
