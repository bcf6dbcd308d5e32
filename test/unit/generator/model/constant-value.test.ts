import { constantValueOf } from "#generator/model/expression.js";
import { assert, suite } from "../../../support/suite.js";

suite("constantValueOf", (test) => {
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
    ["secondary.a !== undefined", ["secondary.a"], false],
    ["secondary['a'] === undefined", ["secondary.a"], true],
    ["secondary.a?.spec?.size === 3", ["secondary.a"], false],
    ["secondary.a?.spec.size === 3", ["secondary.a"], false],
    ["live !== undefined", ["live"], false],
    ["live?.spec.size === 3 || live?.spec.size === 4", ["live"], false],
    ["(secondary.a ?? secondary.b) !== undefined", ["secondary.a", "secondary.b"], false],
  ];
  for (const [text, absent, expected] of cases)
    test(`returns ${JSON.stringify(expected)} for ${JSON.stringify(text)} if ${absent.join() || "nothing"} is absent`, () => {
      assert.equal(constantValueOf(text, new Set(absent)), { value: expected });
    });

  const open: readonly (readonly [text: string, absent: readonly string[]])[] = [
    ["primary.spec.on", []],
    ["primary.spec.on && true", []],
    ["primary.spec.on || false", []],
    ["primary.spec.on ? true : false", []],
    ["primary.spec.on ?? false", []],
    ["secondary.a !== undefined", ["secondary.b"]],
    ["secondary.a === undefined || primary.spec.on", ["secondary.b"]],
    ["secondary.a!.spec.size === 3", ["secondary.a"]],
    ["other.secondary.a !== undefined", ["secondary.a"]],
    ["Object.keys(secondary.a).length > 0", ["secondary.a"]],
    ["typeof secondary.a === 'object'", ["secondary.a"]],
    ["live !== undefined", ["secondary.a"]],
    ["live!.spec.size === 3", ["live"]],
    ["-1 > 2", []],
    ["this is no expression", []],
  ];
  for (const [text, absent] of open)
    test(`returns undefined for ${JSON.stringify(text)} if ${absent.join() || "nothing"} is absent`, () => {
      assert.is(constantValueOf(text, new Set(absent)), undefined);
    });
});
