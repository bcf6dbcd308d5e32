import { describeCall, UserCalls, type LoopDelay } from "#runtime/base/user-calls.js";
import { assert, suite } from "../../../support/suite.js";

const block = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

function observed() {
  const calls = new UserCalls();
  const delays: LoopDelay[] = [];
  const end = calls.observe({ urgentMs: 100, onDelay: (delay) => void delays.push(delay) });
  const blockers = () => delays.flatMap((delay) => delay.blockers.map(({ call }) => call.what));
  return { calls, delays, blockers, [Symbol.dispose]: end };
}

suite("UserCalls", (test) => {
  test("attributes a delay to the innermost call, also if it throws", () => {
    using world = observed();
    const inner = () =>
      world.calls.run({ what: "inner" }, () => {
        block(150);
        throw new Error("no");
      });
    assert.throws(() => world.calls.run({ what: "outer" }, inner), "no");
    world.calls.flush();
    assert.equal(world.blockers(), ["inner"]);
    world.calls.flush();
    assert.equal(world.blockers(), ["inner"], "once");
  });

  test("reports a blocking call that is still running on flush()", () => {
    using world = observed();
    world.calls.run({ what: "outer" }, () => {
      block(150);
      world.calls.flush();
    });
    assert.equal(world.blockers(), ["outer"]);
  });

  test("reports a call that blocked after an await when it ends, and lists it as pending until then", async () => {
    using world = observed();
    const tracked = world.calls.track({ what: "one" }, async () => {
      await Promise.resolve();
      block(700);
    });
    assert.equal(
      [...world.calls.pending].map(({ what }) => what),
      ["one"],
    );
    await tracked;
    assert.is(world.delays.length, 1);
    assert.equal(world.delays[0]!.blockers, [], "it blocked after an await");
    assert.ok(world.delays[0]!.delayMs > 100, `${world.delays[0]!.delayMs}`);
    assert.equal([...world.calls.pending], []);
  });

  test("passes the start and end of calls to the marker", () => {
    const calls = new UserCalls();
    const marks: string[] = [];
    calls.markWith((text) => void marks.push(text));
    calls.run({ what: "outer", primary: "home/a" }, () => calls.run({ what: "inner" }, () => {}));
    assert.equal(marks, ['outer (primary "home/a")', "inner", 'outer (primary "home/a")', ""]);
  });

  test("describes a call by its object or primary and its controller", () => {
    const object = { metadata: { name: "a", namespace: "b" } };
    assert.is(describeCall({ what: "f" }), "f");
    assert.is(describeCall({ what: "f", object, controller: "page" }), 'f (object "b/a", controller "page")');
    assert.is(describeCall({ what: "f", object: 7 }), "f");
    assert.is(describeCall({ what: "f", object, primary: "c/d" }), 'f (primary "c/d")');
  });
});
