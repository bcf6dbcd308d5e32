import { ExpectationRegistry } from "#runtime/reconcile/reconcile-context.js";
import type { ObjectKey } from "#runtime/base/kubernetes-object.js";
import type { Context } from "#runtime/workflow/context.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";

const key = "home/one" as ObjectKey;
const primary = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one", namespace: "home" } };

function create() {
  const clock = new VirtualClock();
  const timedOut: ObjectKey[] = [];
  const registry = new ExpectationRegistry({ clock, onTimeout: (primary) => void timedOut.push(primary) });
  const seen = (name = key) => registry.of(name, { primary, context: {} as Context });
  return { clock, timedOut, registry, seen };
}

suite("expectations", (test) => {
  test("are empty at first", async () => {
    const { seen, registry } = create();
    assert.is(seen().current, undefined);
    assert.is(await seen().check(), undefined);
    assert.is(registry.size, 0);
  });

  test("are reported until they are fulfilled, and then removed with their timer", async () => {
    const { seen, registry, clock, timedOut } = create();
    let isDone = false;
    seen().expect({ name: "rollout", timeoutMs: 1000, isFulfilled: () => isDone });
    assert.is(seen().current, "rollout");
    assert.equal(await seen().check(), { name: "rollout", status: "notYetFulfilled" });
    isDone = true;
    assert.equal(await seen().check(), { name: "rollout", status: "fulfilled" });
    assert.is(await seen().check(), undefined);
    clock.advance(5000);
    assert.equal(timedOut, []);
    assert.is(registry.size, 0);
  });

  test("trigger one reconcile at their timeout and can still be fulfilled", async () => {
    const { seen, clock, timedOut } = create();
    let isDone = false;
    seen().expect({ name: "rollout", timeoutMs: 1000, isFulfilled: async () => isDone });
    clock.advance(999);
    assert.equal(timedOut, []);
    clock.advance(1);
    assert.equal(timedOut, [key]);
    assert.equal(await seen().check(), { name: "rollout", status: "timedOut" });
    clock.advance(10_000);
    assert.equal(timedOut, [key]);
    isDone = true;
    assert.equal(await seen().check(), { name: "rollout", status: "fulfilled" });
  });

  test("replace the previous expectation and its timeout", async () => {
    const { seen, clock, timedOut, registry } = create();
    seen().expect({ name: "first", timeoutMs: 1000, isFulfilled: () => false });
    clock.advance(900);
    seen().expect({ name: "second", timeoutMs: 1000, isFulfilled: () => false });
    clock.advance(900);
    assert.equal(timedOut, []);
    assert.equal(await seen().check("first"), undefined);
    assert.equal(await seen().check("second"), { name: "second", status: "notYetFulfilled" });
    assert.is(registry.size, 1);
  });

  test("are not registered if they are already fulfilled", async () => {
    const { seen, registry } = create();
    const asked: unknown[] = [];
    const isFulfilled = (args: unknown) => asked.push(args) > 0;
    assert.is(await seen().expectUnlessFulfilled({ name: "done", timeoutMs: 1000, isFulfilled }), false);
    assert.is(registry.size, 0);
    assert.is((asked[0] as { primary: unknown }).primary, primary);
    assert.is(await seen().expectUnlessFulfilled({ name: "open", timeoutMs: 1, isFulfilled: () => false }), true);
    assert.is(seen().current, "open");
  });

  test("are separate for each primary", async () => {
    const { seen, registry, clock, timedOut } = create();
    const other = "home/two" as ObjectKey;
    seen().expect({ name: "mine", timeoutMs: 1000, isFulfilled: () => false });
    seen(other).expect({ name: "theirs", timeoutMs: 2000, isFulfilled: () => true });
    seen().remove();
    assert.is(seen().current, undefined);
    assert.is(seen(other).current, "theirs");
    clock.advance(3000);
    assert.equal(timedOut, [other]);
    registry.forget(other);
    assert.is(registry.size, 0);
  });

  test("are removed with their timer when their primary is deleted", () => {
    const { seen, registry, clock, timedOut } = create();
    seen().expect({ name: "one", timeoutMs: 1000, isFulfilled: () => false });
    registry.forget(key);
    assert.is(registry.size, 0);
    assert.is(clock.nextDueAt, undefined);
    clock.advance(5000);
    assert.equal(timedOut, []);
    assert.is(seen().current, undefined);
  });

  test("start no timer after close()", () => {
    const { seen, registry, clock } = create();
    seen().expect({ name: "one", timeoutMs: 1000, isFulfilled: () => false });
    registry.close();
    seen().expect({ name: "late", timeoutMs: 1000, isFulfilled: () => false });
    assert.is(registry.size, 0);
    assert.is(clock.nextDueAt, undefined);
  });

  test("fail with their name if isFulfilled throws", async () => {
    const { seen } = create();
    const isFulfilled = () => {
      throw new Error("no idea");
    };
    seen().expect({ name: "rollout", timeoutMs: 1000, isFulfilled });
    await assert.rejects(seen().check(), /^expectation "rollout": no idea$/);
  });

  const wrong: [problem: string, expectation: object][] = [
    ["an expectation requires a name", { name: "", timeoutMs: 1, isFulfilled: () => true }],
    ['an expectation needs a function isFulfilled: "a" has none', { name: "a", timeoutMs: 1 }],
    [
      'an expectation needs a timeoutMs of more than 0: "a" has NaN',
      { name: "a", timeoutMs: NaN, isFulfilled: () => true },
    ],
  ];
  for (const [problem, expectation] of wrong)
    test(`are rejected if invalid: ${problem}`, () => {
      const { seen } = create();
      assert.throws(
        () => seen().expect(expectation as never),
        (error: Error) => error.message === problem,
      );
    });
});
