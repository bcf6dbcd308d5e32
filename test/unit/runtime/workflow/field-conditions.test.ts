import { conditionIs, fieldEquals } from "#runtime/workflow/conditions/builtin-conditions.js";
import type { Condition } from "#runtime/workflow/definition/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";

/** Asks a condition about a live object. */
function isMet(condition: Condition<unknown, unknown>, live: object | undefined): unknown {
  return condition({ dependent: { name: "a", live } } as Parameters<typeof condition>[0]);
}

suite("conditionIs", (test) => {
  const isReady = conditionIs({ type: "Ready", status: "True" });
  const withCondition = (condition: object) => ({ metadata: { generation: 2 }, status: { conditions: [condition] } });
  const cases: readonly (readonly [title: string, live: object | undefined, expected: boolean])[] = [
    ["no object", undefined, false],
    ["an object without a status", { metadata: {} }, false],
    ["another status", withCondition({ type: "Ready", status: "False" }), false],
    ["another type", withCondition({ type: "Synced", status: "True" }), false],
    ["an older generation", withCondition({ type: "Ready", status: "True", observedGeneration: 1 }), false],
    ["the generation of the spec", withCondition({ type: "Ready", status: "True", observedGeneration: 2 }), true],
    ["no generation", withCondition({ type: "Ready", status: "True" }), true],
  ];
  for (const [title, live, expected] of cases)
    test(`${expected ? "holds" : "does not hold"} for ${title}`, () => assert.is(isMet(isReady, live), expected));

  test("may be about any status", () => {
    const isStalled = conditionIs({ type: "Stalled", status: "False" });
    assert.is(isMet(isStalled, withCondition({ type: "Stalled", status: "False" })), true);
  });
});

suite("fieldEquals", (test) => {
  const cases: readonly (readonly [
    path: string,
    value: string | number | boolean,
    live: unknown,
    expected: boolean,
  ])[] = [
    ["status.phase", "Running", { status: { phase: "Running" } }, true],
    ["status.phase", "Running", { status: { phase: "Pending" } }, false],
    ["status.phase", "Running", { status: {} }, false],
    ["status.phase", "Running", { status: null }, false],
    ["status.phase", "Running", undefined, false],
    ["spec.replicas", 3, { spec: { replicas: 3 } }, true],
    ["spec.replicas", 3, { spec: { replicas: "3" } }, false],
    ["immutable", false, { immutable: false }, true],
    ["immutable", false, {}, false],
    ["spec.length", 3, { spec: "abc" }, false],
    ["constructor.name", "Object", {}, false],
  ];
  for (const [path, value, live, expected] of cases)
    test(`${path} ${expected ? "is" : "is not"} ${JSON.stringify(value)} in ${JSON.stringify(live)}`, () =>
      assert.is(isMet(fieldEquals(path, value), live as object | undefined), expected));
});
