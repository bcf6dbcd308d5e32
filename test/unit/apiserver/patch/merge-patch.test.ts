import type { JsonObject } from "#apiserver/json.js";
import { applyMergePatch } from "#apiserver/write/patch.js";
import { messageOf } from "../../../support/api/status-message.js";
import { assert, suite } from "../../../support/suite.js";

suite("merge patch", (test) => {
  test("merges objects, replaces other values, and deletes fields that are null", () => {
    const table: [live: JsonObject, patch: JsonObject, want: JsonObject][] = [
      [
        { a: 1, b: 2 },
        { a: null, c: 3 },
        { b: 2, c: 3 },
      ],
      [{ a: { x: 1, y: 2 } }, { a: { x: null, z: 3 } }, { a: { y: 2, z: 3 } }],
      [{ a: [1, 2] }, { a: [3] }, { a: [3] }],
      [{}, { a: [1, null, { x: null }] }, { a: [1, null, {}] }],
      [{ a: { k: 1 } }, { a: [1, null, { x: null }] }, { a: [1, null, { x: null }] }],
      [{ a: 1 }, { a: { x: { y: null } } }, { a: { x: {} } }],
      [{}, { a: { x: { y: null }, z: null } }, { a: { x: {} } }],
      [{ a: { x: 1 } }, { a: null }, {}],
      [{}, { a: null }, {}],
    ];
    for (const [live, patch, want] of table) assert.equal(applyMergePatch(live, patch), want, JSON.stringify(patch));
  });

  test("rejects a patch that is not an object with the message of Kubernetes", () => {
    const into = "into Go value of type map[string]interface {}";
    const table: [patch: unknown, want: string][] = [
      [null, "Invalid JSON Patch"],
      [[], `error decoding patch: json: cannot unmarshal array ${into}`],
      [true, `error decoding patch: json: cannot unmarshal bool ${into}`],
    ];
    for (const [patch, want] of table)
      assert.is(
        messageOf(() => applyMergePatch({}, patch)),
        want,
      );
  });
});
