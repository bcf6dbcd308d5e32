import { planJsonPatch } from "#runtime/write/send/plan.js";
import type { JsonResource } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";

const given = { apiVersion: "v1", kind: "X", metadata: { name: "a", uid: "u", resourceVersion: "7" } } as JsonResource;
const lock = { op: "replace", path: "/metadata/resourceVersion", value: "7" };

suite("plans", (test) => {
  test("a patch of a list that holds null, at any depth, tests the version in place of the list", () => {
    for (const list of [[null, 1], [1, null], [{ b: [null] }], [[null]]]) {
      const change = { op: "replace", path: "/status/list", value: [2] } as const;
      const before = { ...given, status: { list } };
      const plan = planJsonPatch(before, () => ({ ...before, status: { list: [2] } }), true);
      assert.equal([plan.body, plan.lock], [[lock, change], "7"]);
    }
  });

  test("a patch of any other list tests that list, and locks nothing", () => {
    for (const list of [[1], ["null", ",null"], [{ a: null }], [[]]]) {
      const before = { ...given, status: { list } };
      const plan = planJsonPatch(before, () => ({ ...before, status: { list: [2] } }), true);
      assert.equal(plan.body, [
        { op: "test", path: "/status/list", value: list },
        { op: "replace", path: "/status/list", value: [2] },
      ]);
      assert.is(plan.lock, undefined);
    }
  });
});
