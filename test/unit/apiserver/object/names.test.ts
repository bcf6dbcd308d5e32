import { type NameRule, checkName } from "#apiserver/object/object-meta.js";
import { generateName } from "#schema/strings/names.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const cases: [rule: NameRule, name: string, problem: string | undefined][] = [
  ["subdomain", "a.b-c", undefined],
  ["subdomain", "A", "a lowercase RFC 1123 subdomain must consist of"],
  ["label", "1a", undefined],
  ["label", "a_b", "a lowercase RFC 1123 label must consist of"],
  ["namespace", "a.b", "must not contain dots"],
  ["namespace", "a".repeat(64), "must be no more than 63 characters"],
  ["path-segment", "system:node", undefined],
  ["path-segment", "a/b", "may not contain '/'"],
  ["path-segment", "..", "may not be '..'"],
];

suite("object name", (test) => {
  for (const [rule, name, problem] of cases) {
    test(`is ${problem === undefined ? "accepted" : "rejected"} as ${rule}: ${name.slice(0, 20)}`, () => {
      const [first] = checkName(rule, name);
      if (problem === undefined) assert.is(first, undefined);
      else assert.ok(first?.startsWith(problem), first);
    });
  }

  test("is valid if generated, for a generateName of any length", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z][a-z0-9-]{0,100}$/), (base) => {
        const name = generateName(base);
        assert.equal(checkName("label", name), []);
        assert.ok(name.startsWith(base.slice(0, 58)));
      }),
    );
  });
});
