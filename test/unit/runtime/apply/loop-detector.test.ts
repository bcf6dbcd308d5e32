import fc from "../../../support/fast-check.js";
import { LoopDetector, type ObservedWrite } from "#runtime/apply/competing-writers.js";
import { assert, suite } from "../../../support/suite.js";

const write = (content: string, input = "generation 1") => ({ content, input });

/** Writes the same at these times, in seconds; the pauses that follow, 0 where it is no loop. */
function pausesOf(detector: LoopDetector, seconds: readonly number[], desired = "same"): number[] {
  return seconds.map((second) => detector.noteWrite("object", write(desired), second * 1000)?.pauseMs ?? 0);
}

/** How long an object has to be left alone before a write; 0 if it may be made now. */
function pauseOf(detector: LoopDetector, next: ObservedWrite, now: number, object = "object"): number {
  return detector.postponementOf(object, () => next, now)?.pauseMs ?? 0;
}

suite("LoopDetector", (test) => {
  test("detects a loop at the third write of the same content within a minute", () => {
    const detector = new LoopDetector();
    assert.is(detector.noteWrite("object", write("same"), 0), undefined);
    assert.is(detector.noteWrite("object", write("same"), 10), undefined);
    assert.equal(detector.noteWrite("object", write("same"), 20), {
      loop: "undone",
      writes: 3,
      isNew: true,
      pauseMs: 2_000,
    });
    assert.equal(detector.noteWrite("object", write("same"), 30), {
      loop: "undone",
      writes: 4,
      isNew: false,
      pauseMs: 4_000,
    });
  });

  test("postpones the next write of a looping object until its pause is over, and no others", () => {
    const detector = new LoopDetector();
    pausesOf(detector, [0, 0]);
    assert.is(pauseOf(detector, write("same"), 0), 0);
    pausesOf(detector, [0]);
    assert.is(pauseOf(detector, write("same"), 500), 1_500);
    assert.is(pauseOf(detector, write("same"), 2_000), 0);
    assert.is(pauseOf(detector, write("same"), 0, "other"), 0);
  });

  test("doubles the pauses up to the limit", () => {
    const detector = new LoopDetector({ initialPauseMs: 1_000, maxPauseMs: 5_000 });
    assert.equal(pausesOf(detector, [0, 0, 0, 1, 3, 7, 12]), [0, 0, 1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  test("detects no loop if the same content is written every 31 s", () => {
    assert.equal(pausesOf(new LoopDetector(), [0, 31, 62, 93, 124, 155]), [0, 0, 0, 0, 0, 0]);
  });

  test("detects no loop if the content changes with its input", () => {
    const detector = new LoopDetector();
    for (let version = 0; version < 50; version++)
      assert.is(detector.noteWrite("object", write(`version ${version}`, `generation ${version}`), version), undefined);
  });

  test("detects a loop at the 20th write of any content within a minute, unless the input is new", () => {
    const detector = new LoopDetector();
    const at = (version: number) => detector.noteWrite("object", write(`version ${version}`), version * 1_000);
    for (let version = 1; version < 20; version++) assert.is(at(version), undefined);
    assert.equal(at(20), { loop: "unsettled", writes: 20, isNew: true, pauseMs: 2_000 });
    assert.is(pauseOf(detector, write("version 21"), 20_500), 1_500);
    assert.equal(detector.noteWrite("object", write("version 21"), 22_000)?.pauseMs, 4_000);
    assert.is(pauseOf(detector, write("version 22", "generation 2"), 22_000), 0);
    assert.is(detector.noteWrite("object", write("version 22", "generation 2"), 22_000), undefined);
  });

  test("detects a loop of writes that follow foreign events only at the 200th within a minute", () => {
    const detector = new LoopDetector();
    const following = (version: number) => ({ ...write(`version ${version}`, "events"), isFollowing: true });
    const at = (version: number) => detector.noteWrite("object", following(version), version * 100);
    for (let version = 1; version < 200; version++) assert.is(at(version), undefined);
    assert.equal(at(200), { loop: "unsettled", writes: 200, isNew: true, pauseMs: 2_000 });
  });

  test("detects a loop at the 20th status write within 9 minutes, also between writes that follow events", () => {
    const detector = new LoopDetector();
    const status = (version: number) => ({ ...write(`version ${version}`), isStatus: true });
    const at = (version: number) => {
      detector.noteWrite("object", { ...status(version), isFollowing: true }, version * 25_000 - 1_000);
      return detector.noteWrite("object", status(version + 0.5), version * 25_000);
    };
    for (let version = 1; version < 20; version++) assert.is(at(version), undefined);
    assert.equal(at(20), { loop: "unsettled", writes: 20, isNew: true, pauseMs: 2_000 });
    // A write that follows an event continues the loop.
    assert.is(pauseOf(detector, { ...status(21), isFollowing: true }, 20 * 25_000 + 500), 1_500);
  });

  test("detects no loop if a status is written every 30 s", () => {
    const intervals = {
      "30 s": () => 30_000,
      "30 s, by a timer that fires early": () => 29_900,
      "30 s, with a first write that takes 10 s": (version: number) => (version === 1 ? 20_000 : 30_000),
      "31 s": () => 31_000,
    };
    for (const [name, intervalOf] of Object.entries(intervals)) {
      const detector = new LoopDetector();
      let now = 0;
      for (let version = 0; version < 100; version++) {
        if (version > 0) now += intervalOf(version);
        const loop = detector.noteWrite("object", { ...write(`${version}`), isStatus: true }, now);
        assert.is(loop, undefined, `write ${version + 1} at intervals of ${name}`);
      }
    }
  });

  test("detects a loop at the 20th status write in intervals of 29 s", () => {
    const detector = new LoopDetector();
    const at = (version: number) =>
      detector.noteWrite("object", { ...write(`${version}`), isStatus: true }, version * 29_000);
    for (let version = 1; version < 20; version++) assert.is(at(version), undefined);
    assert.equal(at(20), { loop: "unsettled", writes: 20, isNew: true, pauseMs: 2_000 });
  });

  test("backs off up to 5 minutes for an object that never settles, for any content", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 40, maxLength: 40 }), (answers) => {
        const detector = new LoopDetector();
        let now = 0;
        for (const [index, answerMs] of answers.entries()) {
          const next = write(`version ${index}`);
          now += answerMs;
          now += pauseOf(detector, next, now);
          detector.noteWrite("object", next, now);
        }
        // Twenty at once at most, then pauses of 2, 4, … 256 and 300 seconds.
        assert.ok(now >= 510_000 + 11 * 300_000, `${answers.length} writes in ${now} ms`);
      }),
    );
  });

  test("writes another desired state without a pause and restarts the count", () => {
    const detector = new LoopDetector();
    pausesOf(detector, [0, 0, 0]);
    assert.is(pauseOf(detector, write("other"), 0), 0);
    assert.equal(pausesOf(detector, [0, 0, 0], "other"), [0, 0, 2_000]);
  });

  test("ends a loop if the object still matches 10 s after the last write", () => {
    const detector = new LoopDetector();
    pausesOf(detector, [0, 0, 0]);
    detector.noteMatch("object", 9_000);
    assert.ok(pauseOf(detector, write("same"), 0) > 0, "it was written just now, so that says nothing");
    detector.noteMatch("object", 10_000);
    assert.is(pauseOf(detector, write("same"), 0), 0);
    assert.equal(pausesOf(detector, [10, 10]), [0, 0]);
  });

  test("ends a loop if there is no write for a minute after its pause", () => {
    const detector = new LoopDetector();
    assert.equal(pausesOf(detector, [0, 0, 0, 62]), [0, 0, 2_000, 4_000]);
    assert.equal(pausesOf(detector, [127]), [0]);
  });

  test("forgets an object that is deleted", () => {
    const detector = new LoopDetector();
    pausesOf(detector, [0, 0, 0]);
    detector.forget("object");
    assert.equal(pausesOf(detector, [0, 0]), [0, 0]);
  });

  test("drops objects without a write for a minute at the next write", () => {
    const detector = new LoopDetector();
    for (let index = 0; index < 100; index++) detector.noteWrite(`object ${index}`, write("same"), 0);
    assert.is(detector.size, 100);
    detector.noteWrite("late", write("same"), 60_001);
    assert.is(detector.size, 1);
  });

  test("evicts the oldest objects above its capacity and keeps the looping one", () => {
    const detector = new LoopDetector({ capacity: 20 });
    for (let round = 0; round < 3; round++) {
      // A tenth of the room is freed at once.
      for (let index = 0; index < 17; index++) detector.noteWrite(`others ${round} ${index}`, write("same"), round);
      const loop = detector.noteWrite("hot", write("same"), round);
      assert.is(loop?.isNew, round === 2 ? true : undefined);
      assert.ok(detector.size >= 18 && detector.size <= 20, `${detector.size} are kept`);
    }
  });

  test("backs off up to 5 minutes if another client reverts every write, after any delay", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 50, maxLength: 50 }), (answers) => {
        const detector = new LoopDetector();
        let now = 0;
        let writes = 0;
        for (const answerMs of answers) {
          // It is written as soon as that is allowed after the answer.
          now += answerMs;
          now += pauseOf(detector, write("same"), now);
          detector.noteWrite("object", write("same"), now);
          writes++;
          assert.is(detector.size, 1);
        }
        // 2, 4, … 256, 300, 300 seconds: the first eight pauses are over after 510 s, and then there is one write in five minutes.
        assert.ok(now >= 510_000 + (writes - 11) * 300_000, `${writes} writes in ${now} ms`);
      }),
    );
  });
});
