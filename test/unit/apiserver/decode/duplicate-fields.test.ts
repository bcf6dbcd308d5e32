import { duplicateFields, mayHaveDuplicates, memberCountOf } from "#apiserver/decode/body.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const cases: [json: string, want: string[]][] = [
  ['{"data":{"a":"1","a":"2"}}', ["data.a"]],
  ['{"a":[{"x":1},{"x":1,"x":2}]}', ["a[1].x"]],
  ['{"a":{"b":1},"c":{"b":1},"a":1}', ["a"]],
  ['{"a\\"b":1,"a\\"b":2}', ['a"b']],
  ['{"a":"{\\"x\\":1,\\"x\\":2}"}', []],
  ['{"l":[[{"x":1}],[{"x":1,"x" : 2}]]}', ["l[1][0].x"]],
];

suite("duplicateFields", (test) => {
  for (const [json, want] of cases) {
    test(`finds ${want.length === 0 ? "no duplicates" : want.join()} in ${json}`, () => {
      assert.equal(duplicateFields(json), want);
      if (want.length > 0) assert.is(mayHaveDuplicates(json, memberCountOf(JSON.parse(json))), true);
    });
  }

  test("finds none in the output of JSON.stringify", () => {
    fc.assert(fc.property(fc.json(), (json) => assert.equal(duplicateFields(json), [])));
  });

  test("rules out duplicates by the member count alone if no string contains a colon", () => {
    const json = fc.json({ stringUnit: fc.constantFrom("a", "b", "\\", '"', " ") });
    fc.assert(fc.property(json, (text) => assert.is(mayHaveDuplicates(text, memberCountOf(JSON.parse(text))), false)));
  });
});
