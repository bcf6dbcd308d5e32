import { duplicateFields } from "#apiserver/decode/duplicate-fields.js";
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

suite("duplicate fields", (test) => {
  for (const [json, want] of cases) {
    test(`${json} repeats ${want.length === 0 ? "nothing" : want.join()}`, () => {
      assert.equal(duplicateFields(json), want);
    });
  }

  test("what JSON.stringify writes repeats nothing", () => {
    fc.assert(fc.property(fc.json(), (json) => assert.equal(duplicateFields(json), [])));
  });
});
