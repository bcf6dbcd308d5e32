import { constantValueOf } from "#generator/model/expression/constant-value.js";
import { assert, suite } from "../../../support/suite.js";

suite("what an expression always comes to", (test) => {
  const cases: readonly (readonly [text: string, absent: readonly string[], expected: unknown])[] = [
    ["true", [], true],
    [" (\n false\n) ", [], false],
    ["!true", [], false],
    ["!!'text'", [], true],
    ["1 > 2", [], false],
    ["'a' === `a`", [], true],
    ["undefined !== null", [], true],
    ["false && primary.spec.on", [], false],
    ["primary.spec.on && false", [], false],
    ["primary.spec.on || true", [], true],
    ["null ?? false", [], false],
    ["true ? false : primary.spec.on", [], false],
    ["primary.spec.on ? false : false", [], false],
    ["secondary.a !== undefined", ["a"], false],
    ["secondary['a'] === undefined", ["a"], true],
    ["secondary.a?.spec?.size === 3", ["a"], false],
    ["secondary.a?.spec.size === 3", ["a"], false],
    ["(secondary.a ?? secondary.b) !== undefined", ["a", "b"], false],
  ];
  for (const [text, absent, expected] of cases)
    test(`${JSON.stringify(text)} is ${JSON.stringify(expected)} without ${absent.join() || "anything absent"}`, () => {
      assert.equal(constantValueOf(text, new Set(absent)), { value: expected });
    });

  const open: readonly (readonly [text: string, absent: readonly string[]])[] = [
    ["primary.spec.on", []],
    ["primary.spec.on && true", []],
    ["primary.spec.on || false", []],
    ["primary.spec.on ? true : false", []],
    ["primary.spec.on ?? false", []],
    ["secondary.a !== undefined", ["b"]],
    ["secondary.a === undefined || primary.spec.on", ["b"]],
    ["secondary.a!.spec.size === 3", ["a"]],
    ["other.secondary.a !== undefined", ["a"]],
    ["Object.keys(secondary.a).length > 0", ["a"]],
    ["typeof secondary.a === 'object'", ["a"]],
    ["-1 > 2", []],
    ["this is no expression", []],
  ];
  for (const [text, absent] of open)
    test(`${JSON.stringify(text)} may be anything without ${absent.join() || "anything absent"}`, () => {
      assert.is(constantValueOf(text, new Set(absent)), undefined);
    });
});
