// The patches that are made of two states of an object, carried out as the API server does.
import fc from "../../../support/fast-check.js";
import { jsonDiff } from "#runtime/apply/write.js";
import { applyJsonPatch } from "#schema/json/patch.js";
import type { JsonValue } from "#schema/json/json.js";
import { assert, suite } from "../../../support/suite.js";

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

suite("jsonDiff", (test) => {
  test("returns a patch that turns one object into the other", () => {
    fc.assert(
      fc.property(object, object, (before, after) => {
        const operations = jsonDiff(before, after);
        assert.equal(applyJsonPatch(before, operations), after);
      }),
      { numRuns: 500 },
    );
  });

  test("returns no operations for equal objects", () => {
    fc.assert(fc.property(object, (value) => assert.equal(jsonDiff(value, structuredClone(value)), [])));
  });

  const differences: { title: string; before: object; after: object; operations: unknown }[] = [
    {
      title: "appends an item with add, which merges with items of other clients",
      before: { list: ["a"] },
      after: { list: ["a", "b"] },
      operations: [{ op: "add", path: "/list/-", value: "b" }],
    },
    {
      title: "tests the previous list before any other change to it",
      before: { list: ["a", "b"] },
      after: { list: ["b"] },
      operations: [
        { op: "test", path: "/list", value: ["a", "b"] },
        { op: "replace", path: "/list", value: ["b"] },
      ],
    },
    {
      title: "tests that a new map does not exist yet",
      before: {},
      after: { labels: { a: "b" } },
      operations: [
        { op: "test", path: "/labels", value: null },
        { op: "add", path: "/labels", value: { a: "b" } },
      ],
    },
    {
      title: "escapes names in paths",
      before: { "a/b~c": 1 },
      after: {},
      operations: [{ op: "remove", path: "/a~1b~0c" }],
    },
  ];
  for (const { title, before, after, operations } of differences)
    test(title, () => assert.equal(jsonDiff(before, after), operations));

  test("returns a patch that fails if another client changed the same list or map", () => {
    const refuses = (path: string, { live, before, after }: { live: JsonValue; before: object; after: object }) => {
      const operations = jsonDiff(before, after);
      assert.throws(() => applyJsonPatch(live, operations), `testing value ${path} failed: test failed`);
    };
    refuses("/list", { live: { list: ["a", "b", "theirs"] }, before: { list: ["a", "b"] }, after: { list: ["b"] } });
    refuses("/labels", { live: { labels: { theirs: "x" } }, before: {}, after: { labels: { ours: "x" } } });
  });
});
