import { jsonPatchOf } from "#runtime/apply/write.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { type JsonResource, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { widgetCrd } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

const given = { apiVersion: "v1", kind: "X", metadata: { name: "a", uid: "u", resourceVersion: "7" } } as JsonResource;
const definition = customDefinition(widgetCrd);
const target = { definition, cache: new ResourceView(definition) };
const lock = { op: "replace", path: "/metadata/resourceVersion", value: "7" };

suite("jsonPatchOf", (test) => {
  test("tests resourceVersion instead of a list that contains null at any depth", () => {
    for (const list of [[null, 1], [1, null], [{ b: [null] }], [[null]]]) {
      const change = { op: "replace", path: "/status/list", value: [2] } as const;
      const before = { ...given, status: { list } };
      const plan = jsonPatchOf(target, before, () => ({ ...before, status: { list: [2] } }), "status");
      assert.equal([plan.body, plan.lock], [[lock, change], "7"]);
    }
  });

  test("tests any other list and not resourceVersion", () => {
    for (const list of [[1], ["null", ",null"], [{ a: null }], [[]]]) {
      const before = { ...given, status: { list } };
      const plan = jsonPatchOf(target, before, () => ({ ...before, status: { list: [2] } }), "status");
      assert.equal(plan.body, [
        { op: "test", path: "/status/list", value: list },
        { op: "replace", path: "/status/list", value: [2] },
      ]);
      assert.is(plan.lock, undefined);
    }
  });
});
