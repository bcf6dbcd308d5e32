import fc from "../../../support/fast-check.js";
import { isOwnedByFormer, ownedBy } from "#runtime/base/kubernetes-object.js";
import { decodeResource } from "#runtime/client/object-decoder.js";
import { assert, suite } from "../../../support/suite.js";

const MANAGER = "web-page";

const apply = (fieldsV1: object, more: object = {}) => ({
  manager: MANAGER,
  operation: "Apply",
  apiVersion: "v1",
  time: "2026-01-01T00:00:00Z",
  fieldsType: "FieldsV1",
  fieldsV1,
  ...more,
});

function decode(text: string, ...fieldManagers: string[]) {
  return decodeResource(Buffer.from(text), { fieldManagers: fieldManagers.length > 0 ? fieldManagers : [MANAGER] });
}

suite("decodeResource", (test) => {
  test("removes only metadata.managedFields, not other fields of that name", () => {
    const object = {
      apiVersion: "v1",
      kind: "ConfigMap",
      spec: { managedFields: [{ a: 1 }], metadata: { managedFields: [1] } },
      metadata: { name: "a", labels: { managedFields: "yes" }, annotations: { x: '"managedFields":[' } },
      status: { metadata: { managedFields: ["x"] } },
    };
    const withFields = { ...object, metadata: { ...object.metadata, managedFields: [apply({ "f:data": {} })] } };
    assert.equal(decode(JSON.stringify(withFields)).object, object);
    assert.equal(decode(JSON.stringify(object)).object, object);
  });

  test("keeps the fields applied by the controllers of the operator, separately, and drops all others", () => {
    const managedFields = [
      apply({ "f:data": { "f:a": {} } }),
      { ...apply({ "f:x": {} }), manager: "other" },
      { ...apply({ "f:y": {} }), operation: "Update" },
      apply({ "f:status": {} }, { subresource: "status", apiVersion: "v2" }),
      apply({ "f:spec": {} }, { subresource: "scale" }),
    ];
    const text = JSON.stringify({ metadata: { name: "a", managedFields } });
    const entry = decode(text);
    const fields = { fieldManager: MANAGER, subresource: "", apiVersion: "v1", fieldsV1: '{"f:data":{"f:a":{}}}' };
    const status = { fieldManager: MANAGER, subresource: "status", apiVersion: "v2", fieldsV1: '{"f:status":{}}' };
    assert.equal(entry.owned, [fields, status]);
    assert.equal(ownedBy(entry, MANAGER), fields);
    assert.equal(ownedBy(entry, MANAGER, "status"), status);
    const shared = decode(text, "nobody", MANAGER, "other");
    assert.equal(ownedBy(shared, "other"), { ...fields, fieldManager: "other", fieldsV1: '{"f:x":{}}' });
    assert.equal(ownedBy(shared, MANAGER, "status"), status);
    assert.is(ownedBy(shared, "nobody"), undefined);
    assert.equal(decode(text, "nobody"), { object: { metadata: { name: "a" } } });
  });

  test("keeps for a former field manager only that it owns fields, by apply or update", () => {
    const former = { manager: "old" };
    const decodeFormer = (...managedFields: object[]) => {
      const fieldManagers = Object.assign([MANAGER], { former: new Set(["old"]) });
      return decodeResource(Buffer.from(JSON.stringify({ metadata: { name: "a", managedFields } })), { fieldManagers });
    };
    const mark = { fieldManager: "old", subresource: "", apiVersion: "", fieldsV1: "{}", isFormer: true };
    for (const operation of ["Apply", "Update"]) {
      const entry = decodeFormer(apply({ "f:data": { "f:a": {} } }), apply({ "f:x": {} }, { ...former, operation }));
      assert.equal(entry.owned?.slice(1), [mark]);
      assert.is(ownedBy(entry, "old"), undefined);
      assert.ok(isOwnedByFormer(entry, ["old"]));
      assert.not(isOwnedByFormer(entry, ["other"]));
    }
    // What it wrote through a subresource stays its own.
    const status = decodeFormer(apply({ "f:status": {} }, { ...former, operation: "Update", subresource: "status" }));
    assert.not(isOwnedByFormer(status, ["old"]));
  });

  test("matches a field manager whose name JSON escapes", () => {
    const managedFields = [{ ...apply({ "f:a": {} }), manager: 'we "two"' }];
    const text = JSON.stringify({ metadata: { name: "a", managedFields } });
    assert.is(decode(text, 'we "two"').owned?.[0]?.fieldsV1, '{"f:a":{}}');
  });

  test("returns no owned fields if managedFields is null or empty", () => {
    const object = { metadata: { name: "a" } };
    assert.equal(decode('{"metadata":{"name":"a","managedFields":[]}}'), { object });
    assert.equal(decode('{"metadata":{"name":"a","managedFields":null}}').owned, undefined);
  });

  test("decodes an object in the middle of a buffer without modifying the bytes around it", () => {
    const object = { metadata: { managedFields: [apply({ "f:a": {} })], name: "a" } };
    const [before, text, behind] = ['{"type":"ADDED","object":', JSON.stringify(object), '}\n{"next":1}'];
    const bytes = Buffer.from(before + text + behind);
    const start = before.length;
    const decoded = decodeResource(bytes, { start, end: start + text.length, fieldManagers: [MANAGER] });
    assert.equal(decoded.object, { metadata: { name: "a" } });
    assert.is(bytes.toString("utf8", start + text.length), behind);
  });

  test("returns what JSON.parse returns without metadata.managedFields, for any object", () => {
    const key = fc.oneof(
      fc.constantFrom("managedFields", "metadata", "manager", '"', "\\", 'a"managedFields":[', "ключ", "\u0000"),
      fc.string(),
    );
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.string({ unit: "grapheme" }),
        fc.constantFrom('\\"', '"managedFields":[{}]', "\\\\", "}{][,", "😀"),
        fc.double({ noDefaultInfinity: true, noNaN: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(key, tie("value"), { maxKeys: 4 }),
      ),
    })).value;
    const members = fc.dictionary(key, value, { maxKeys: 5 });
    const layout = fc.constantFrom(undefined, 1, "\t");
    fc.assert(
      fc.property(
        members,
        members,
        fc.array(members),
        fc.nat(6),
        layout,
        (root, metadata, managedFields, at, space) => {
          delete metadata["managedFields"];
          const entries = Object.entries(metadata);
          entries.splice(Math.min(at, entries.length), 0, ["managedFields", managedFields]);
          // fromEntries would reorder keys that look like numbers, so the object decides where the member stands.
          const object = { ...root, metadata: Object.fromEntries(entries), kind: "X" };
          const text = JSON.stringify(object, null, space);
          const expected: unknown = JSON.parse(JSON.stringify({ ...root, metadata, kind: "X" }));
          assert.equal(decode(text).object, expected);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
