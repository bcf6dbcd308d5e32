import { conditionIs, fieldEquals, ready } from "#runtime/workflow/conditions.js";
import type { Condition } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../../support/suite.js";

/** Asks a condition about a live object. */
function ask(condition: Condition<unknown, unknown>, live: object | undefined): unknown {
  return condition({ dependent: { name: "a" }, live } as Parameters<typeof condition>[0]);
}

function isMet(condition: Condition<unknown, unknown>, live: object | undefined): unknown {
  const result = ask(condition, live);
  return typeof result === "boolean" ? result : (result as { isMet: boolean }).isMet;
}

suite("conditionIs", (test) => {
  const isReady = conditionIs({ type: "Ready", status: "True" });
  const withCondition = (condition: object) => ({ metadata: { generation: 2 }, status: { conditions: [condition] } });
  const cases: readonly (readonly [title: string, live: object | undefined, expected: boolean])[] = [
    ["no object", undefined, false],
    ["an object without a status", { metadata: {} }, false],
    ["another status", withCondition({ type: "Ready", status: "False" }), false],
    ["another type", withCondition({ type: "Synced", status: "True" }), false],
    ["an older observedGeneration", withCondition({ type: "Ready", status: "True", observedGeneration: 1 }), false],
    ["the current observedGeneration", withCondition({ type: "Ready", status: "True", observedGeneration: 2 }), true],
    ["a missing observedGeneration", withCondition({ type: "Ready", status: "True" }), true],
  ];
  for (const [title, live, expected] of cases)
    test(`${expected ? "is met" : "is not met"} for ${title}`, () => assert.is(isMet(isReady, live), expected));

  test("supports status False", () => {
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
    test(`is ${expected ? "" : "not "}met for ${path} = ${JSON.stringify(value)} in ${JSON.stringify(live)}`, () =>
      assert.is(isMet(fieldEquals(path, value), live as object | undefined), expected));
});

suite("details of built-in conditions", (test) => {
  const page = (status: object) => ({
    kind: "Page",
    metadata: { namespace: "default", name: "one", generation: 2 },
    status,
  });
  const deployment = {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { namespace: "default", name: "web", generation: 2 } },
    ...{ spec: { replicas: 3 }, status: { observedGeneration: 2, updatedReplicas: 1, replicas: 3 } },
  };
  const isReady = conditionIs({ type: "Ready", status: "True" });
  const cases: readonly (readonly [
    title: string,
    condition: Condition<unknown, unknown>,
    live: object | undefined,
    detail: string,
  ])[] = [
    ["the incomplete rollout", ready, deployment, "Deployment default/web is not ready: 1 of 3 replicas updated"],
    ["that the object does not exist", ready, undefined, "it does not exist yet"],
    [
      "why the condition has another status",
      isReady,
      page({ conditions: [{ type: "Ready", status: "False", reason: "Starting", message: "no node fits" }] }),
      "Page default/one lacks Ready=True: its condition Ready is False: no node fits",
    ],
    [
      "that the condition has an older observedGeneration",
      isReady,
      page({ conditions: [{ type: "Ready", status: "True", observedGeneration: 1 }] }),
      "Page default/one lacks Ready=True: its condition Ready is older than its spec",
    ],
    [
      "which field has another value, without the value",
      fieldEquals("status.token", "a"),
      page({ token: "b" }),
      "Page default/one is not as awaited: its status.token has another value",
    ],
    [
      "which field is missing",
      fieldEquals("status.phase", "a"),
      page({}),
      "Page default/one is not as awaited: it has no status.phase",
    ],
  ];
  for (const [title, condition, live, detail] of cases)
    test(`report ${title}`, () => assert.equal(ask(condition, live), { isMet: false, detail }));

  test("omit kind and name of an external resource", () => {
    assert.equal(ask(fieldEquals("state", "up"), { id: 7, state: "down" }), {
      isMet: false,
      detail: "is not as awaited: its state has another value",
    });
  });
});
