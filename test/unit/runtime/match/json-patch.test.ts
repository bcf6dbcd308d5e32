// The patches that are sent, and what is expected of them, checked against the API server's own.
import fc from "../../../support/fast-check.js";
import { applyJsonPatch as applyOnServer } from "#apiserver/patch/json-patch.js";
import { applyMergePatch as mergeOnServer } from "#apiserver/patch/merge-patch.js";
import type { JsonValue, JsonPatchOperation } from "#runtime/base/kubernetes-object.js";
import { applyJsonPatch, applyMergePatch, jsonDiff } from "#runtime/match/json-patch.js";
import { assert, suite } from "../../../support/suite.js";

/** What a server says of every operation that does not fit. */
const REFUSED = "the server rejected our request due to an error in our request";

const scalar = fc.oneof(fc.constantFrom("a", "b", ""), fc.integer({ min: 0, max: 2 }), fc.boolean());
const names = fc.constantFrom("a", "b", "x/y", "~1", "toString", "__proto__");
const { value: json } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(names, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));
const object = fc.dictionary(names, json, { maxKeys: 4, noNullPrototype: true });
const patch = fc.dictionary(names, fc.oneof(json, fc.constant(null)), { maxKeys: 4, noNullPrototype: true });

suite("json patch", (test) => {
  test("the difference of two objects turns one into the other, here and at the server", () => {
    fc.assert(
      fc.property(object, object, (before, after) => {
        const operations = jsonDiff(before, after);
        assert.equal(applyJsonPatch(before, operations), after);
        assert.equal(applyOnServer(before, operations), after);
      }),
      { numRuns: 500 },
    );
  });

  test("equal objects have no difference", () => {
    fc.assert(fc.property(object, (value) => assert.equal(jsonDiff(value, structuredClone(value)), [])));
  });

  const differences: { title: string; before: object; after: object; operations: unknown }[] = [
    {
      title: "an item that is appended is added, so that it goes with items of others",
      before: { list: ["a"] },
      after: { list: ["a", "b"] },
      operations: [{ op: "add", path: "/list/-", value: "b" }],
    },
    {
      title: "a list that is changed otherwise has to be as it was read",
      before: { list: ["a", "b"] },
      after: { list: ["b"] },
      operations: [
        { op: "test", path: "/list", value: ["a", "b"] },
        { op: "replace", path: "/list", value: ["b"] },
      ],
    },
    {
      title: "a map that is new must not be there yet",
      before: {},
      after: { labels: { a: "b" } },
      operations: [
        { op: "test", path: "/labels", value: null },
        { op: "add", path: "/labels", value: { a: "b" } },
      ],
    },
    {
      title: "names are escaped",
      before: { "a/b~c": 1 },
      after: {},
      operations: [{ op: "remove", path: "/a~1b~0c" }],
    },
  ];
  for (const { title, before, after, operations } of differences)
    test(title, () => assert.equal(jsonDiff(before, after), operations));

  test("a patch does not undo what somebody did to the same list or map meanwhile", () => {
    const refuses = (path: string, { live, before, after }: { live: JsonValue; before: object; after: object }) => {
      const operations = jsonDiff(before, after);
      assert.throws(() => applyJsonPatch(live, operations), `${path} is not as tested`);
      assert.throws(() => applyOnServer(live, operations), REFUSED);
    };
    refuses("/list", { live: { list: ["a", "b", "theirs"] }, before: { list: ["a", "b"] }, after: { list: ["b"] } });
    refuses("/labels", { live: { labels: { theirs: "x" } }, before: {}, after: { labels: { ours: "x" } } });
  });

  const operations: JsonPatchOperation[][] = [
    [{ op: "replace", path: "", value: { new: true } }],
    [{ op: "add", path: "/list/0", value: "first" }],
    [{ op: "remove", path: "/list/1" }],
    [{ op: "move", from: "/list/0", path: "/list/2" }],
    [{ op: "copy", from: "/map/a", path: "/copy" }],
    [{ op: "replace", path: "/missing", value: 1 }],
    [{ op: "test", path: "/missing", value: null }],
  ];
  for (const each of operations.slice(1))
    test(`${JSON.stringify(each)} does what it does at the server`, () => {
      const before = { list: ["a", "b", "c"], map: { a: { b: 1 } } };
      assert.equal(applyJsonPatch(before, each), applyOnServer(before, each));
      assert.equal(before, { list: ["a", "b", "c"], map: { a: { b: 1 } } });
    });

  test("the whole document may be replaced", () => {
    assert.equal(applyJsonPatch({ a: 1 }, operations[0]!), { new: true });
  });

  const unfitting = [
    [{ op: "remove", path: "/missing" }, "there is no /missing"],
    [{ op: "add", path: "/list/4", value: 1 }, "there is no item 4 in a list of 4"],
    [{ op: "replace", path: "/list/-", value: 1 }, "there is no item - in a list of 3"],
    [{ op: "test", path: "/list/0", value: "b" }, "/list/0 is not as tested"],
    [{ op: "add", path: "/list/0/x", value: 1 }, "there is no /list/0/x"],
    [{ op: "remove", path: "/missing/x" }, "there is no /missing/x"],
    [{ op: "twist", path: "/list" }, '"twist" is no operation of a JSON patch'],
  ] as const;
  for (const [each, message] of unfitting)
    test(`${JSON.stringify(each)} does not fit, nor does it at the server`, () => {
      const before = { list: ["a", "b", "c"] };
      assert.throws(() => applyJsonPatch(before, [each as JsonPatchOperation]), message);
      assert.throws(() => applyOnServer(before, [each]), REFUSED, JSON.stringify(each));
    });
});

suite("json merge patch", (test) => {
  test("does what it does at the server, and leaves its target as it is", () => {
    fc.assert(
      fc.property(object, patch, (before, change) => {
        const copy = structuredClone(before);
        assert.equal(applyMergePatch(before, change), mergeOnServer(structuredClone(before), change));
        assert.equal(before, copy);
      }),
      { numRuns: 500 },
    );
  });
});
