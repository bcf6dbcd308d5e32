import type { JsonValue } from "#apiserver/json.js";
import { applyJsonPatch, unknownPatchMembers } from "#apiserver/patch/json-patch.js";
import { messageOf, statusOf } from "../../../support/api/status-message.js";
import { assert, suite } from "../../../support/suite.js";

const GENERIC = "the server rejected our request due to an error in our request";
const object = { data: { a: "1" }, list: ["x", "y"], nested: { "a/b": { "~": 1 } } };

suite("JSON patch", (test) => {
  test("applies add, remove, replace, copy, move, and test", () => {
    const table: [operation: JsonValue, path: keyof typeof object, want: JsonValue][] = [
      [{ op: "add", path: "/data/b", value: "2" }, "data", { a: "1", b: "2" }],
      [{ op: "add", path: "/data/b" }, "data", { a: "1", b: null }],
      [{ op: "add", path: "/list/-", value: "z" }, "list", ["x", "y", "z"]],
      [{ op: "add", path: "/list/2", value: "z" }, "list", ["x", "y", "z"]],
      [{ op: "add", path: "/list/-1", value: "z" }, "list", ["x", "y", "z"]],
      [{ op: "add", path: "/list/01", value: "z" }, "list", ["x", "z", "y"]],
      [{ op: "remove", path: "/list/-1" }, "list", ["x"]],
      [{ op: "remove", path: "/data/a" }, "data", {}],
      [{ op: "replace", path: "/list/-1", value: "z" }, "list", ["x", "z"]],
      [{ op: "replace", path: "/data/new", value: "z" }, "data", { a: "1", new: "z" }],
      [{ op: "replace", path: "/nested/a~1b/~0", value: 2 }, "nested", { "a/b": { "~": 2 } }],
      [{ op: "copy", from: "/data/a", path: "/data/c" }, "data", { a: "1", c: "1" }],
      [{ op: "copy", from: "/data/none", path: "/data/c" }, "data", { a: "1", c: null }],
      [{ op: "move", from: "/data/a", path: "/data/c" }, "data", { c: "1" }],
      [{ op: "move", from: "/list/0", path: "/list/1" }, "list", ["y", "x"]],
      [{ op: "test", path: "/data/none", value: null }, "data", { a: "1" }],
      [{ op: "test", path: "/data/none" }, "data", { a: "1" }],
      [{ op: "test", path: "/list", value: ["x", "y"] }, "list", ["x", "y"]],
    ];
    for (const [operation, key, want] of table) {
      const patched = applyJsonPatch(object, [operation]) as typeof object;
      assert.equal(patched[key], want, JSON.stringify(operation));
    }
    assert.equal(object.list, ["x", "y"], "the given object is not changed");
  });

  test("rejects an operation that does not apply with 422", () => {
    const table: JsonValue[] = [
      { op: "add", path: "/list/3", value: "z" },
      { op: "add", path: "/missing/b", value: "z" },
      { op: "add", path: "/data/a/b", value: "z" },
      { op: "add", path: "", value: {} },
      { op: "add" },
      { op: "remove", path: "/data/none" },
      { op: "remove", path: "/list/-" },
      { op: "remove", path: "/list/-3" },
      { op: "replace", path: "/list/5", value: "z" },
      { op: "test", path: "/missing/b", value: null },
      { op: "test", path: "/data/a", value: null },
      { op: "test", path: "/list/7", value: null },
      { op: "move", from: "/data", path: "/data/c" },
      { op: "move", from: "/data/none", path: "/data/c" },
      { op: "explode", path: "/data/a" },
      { Op: "add", PATH: "/data/q", value: "1" },
      null,
    ];
    for (const operation of table) {
      const status = statusOf(() => applyJsonPatch(object, [operation]));
      assert.equal([status.code, status.message, status.details], [422, GENERIC, {}], JSON.stringify(operation));
    }
  });

  test("rejects a body that is not a patch with the message of Kubernetes", () => {
    const prefix = "error decoding patch: json: cannot unmarshal";
    const table: [patch: unknown, want: string][] = [
      [{}, `${prefix} object into Go value of type []handlers.jsonPatchOp`],
      ["a", `${prefix} string into Go value of type []handlers.jsonPatchOp`],
      [[1], `${prefix} number into Go value of type handlers.jsonPatchOp`],
      [[{ op: 1 }], `${prefix} number into Go struct field jsonPatchOp.op of type string`],
      [
        Array.from({ length: 10_001 }, () => ({})),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
      ],
    ];
    for (const [patch, want] of table)
      assert.is(
        messageOf(() => applyJsonPatch(object, patch)),
        want,
      );
  });

  test("changes nothing if it is null or empty", () => {
    assert.equal(applyJsonPatch(object, null), object);
    assert.equal(applyJsonPatch(object, []), object);
  });

  test("reports unknown members of operations", () => {
    const patch = [
      { op: "add", path: "/a", odd: 1 },
      { op: "test", path: "/a", x: 1, y: 2 },
    ];
    assert.equal(unknownPatchMembers(patch), ["[0].odd", "[1].x", "[1].y"]);
  });
});
