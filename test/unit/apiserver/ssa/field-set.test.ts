import {
  FieldSet,
  compareValues,
  decodeFieldsV1,
  encodeFieldsV1,
  keyElement,
  valueElement,
} from "#apiserver/ssa/field-set.js";
import type { JsonValue } from "#apiserver/json.js";
import { assert, suite } from "../../../support/suite.js";

suite("FieldSet", (test) => {
  test("encodes fields first, then keys, values, and indices", () => {
    const fields = {
      "i:1": {},
      "v:2": {},
      "f:b": {},
      'k:{"name":"b"}': {},
      "f:a": {},
      "v:1": {},
      'k:{"name":"a"}': {},
    };
    assert.equal(Object.keys(encodeFieldsV1(decodeFieldsV1(fields))), [
      "f:a",
      "f:b",
      'k:{"name":"a"}',
      'k:{"name":"b"}',
      "v:1",
      "v:2",
      "i:1",
    ]);
  });

  test("merges equal path elements, regardless of how their JSON is written", () => {
    const set = decodeFieldsV1({ 'k:{"b":1.0,"a":"x"}': {}, "v:1.0": {} });
    assert.equal(encodeFieldsV1(set), { 'k:{"a":"x","b":1}': {}, "v:1": {} });
  });

  test("skips unknown prefixes and rejects malformed path elements", () => {
    assert.equal(encodeFieldsV1(decodeFieldsV1({ "x:1": {}, "f:a": {} })), { "f:a": {} });
    for (const broken of ["", "f", "k:[]", "k:{}", "i:x", "nocolon"])
      assert.throws(() => decodeFieldsV1({ [broken]: {} }), `unable to parse path element "${broken}"`);
    for (const unfinished of ["k:{", "v:{"])
      assert.throws(() => decodeFieldsV1({ [unfinished]: {} }), "in JSON at position 1", unfinished);
  });

  test("escapes keys and values as Go does", () => {
    assert.is(valueElement("<b>&\u2028é\u0001"), 'v:"\\u003cb\\u003e\\u0026\\u2028é\\u0001"');
    assert.is(keyElement({ port: 80, name: "a" }), 'k:{"name":"a","port":80}');
  });

  test("orders values: numbers, strings, booleans, lists, maps, null", () => {
    const ordered: JsonValue[] = [-1, 1, 1.5, "a", "ab", "b", false, true, [], [1], [2], {}, { a: 1 }, { b: 0 }, null];
    assert.equal([...ordered].reverse().sort(compareValues), ordered);
  });

  test("lists members before the paths below them", () => {
    const set = decodeFieldsV1({
      "f:a": { ".": {}, "f:z": {} },
      "f:b": {},
      'k:{"p":1,"n":"x"}': {},
      'v:"s"': {},
      "i:3": {},
    });
    assert.equal(set.paths(), [".a", ".b", '[n="x",p=1]', '[="s"]', "[3]", ".a.z"]);
  });

  test("keeps paths below a removed member, except with differenceWithBelow", () => {
    const set = FieldSet.of(".a", ".a.b", ".c");
    assert.equal(set.difference(FieldSet.of(".a")).paths(), [".c", ".a.b"]);
    assert.equal(set.differenceWithBelow(FieldSet.of(".a")).paths(), [".c"]);
    assert.ok(FieldSet.of(".a.b").has(["f:a", "f:b"]));
    assert.not.ok(FieldSet.of(".a.b").has(["f:a"]));
  });
});
