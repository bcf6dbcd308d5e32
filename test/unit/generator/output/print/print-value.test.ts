import { printLine, printValue } from "#generator/emit/print.js";
import fc from "../../../../support/fast-check.js";
import { format } from "prettier";
import { assert, suite } from "../../../../support/suite.js";

// What is asserted to the compiler is no JavaScript.
const evaluate = (text: string): unknown =>
  new Function(`return (${text.replace(/([}\]]) as never\b/g, "$1")});`)() as unknown;

suite("printValue", (test) => {
  test("evaluates to the value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        // JSON has no -0.
        const plain = JSON.parse(JSON.stringify(value)) as unknown;
        assert.equal(evaluate(printValue(plain)), plain);
        assert.equal(evaluate(printLine(plain)), plain);
      }),
    );
  });

  test("keeps a key __proto__", () => {
    const value = JSON.parse('{"__proto__":{"type":"string"},"a-b":1}') as object;
    assert.is(printLine(value), '{ ["__proto__"]: { type: "string" }, "a-b": 1 }');
    assert.ok(Object.hasOwn(evaluate(printValue(value)) as object, "__proto__"));
  });

  test("casts fields that shadow Object members to never", () => {
    assert.is(
      printLine({ constructor: { type: "string" }, valueOf: 1 }),
      '{ constructor: { type: "string" } as never, valueOf: 1 }',
    );
  });

  test("prints in prettier's layout", async () => {
    const value = {
      short: ["a", "b"],
      text: "x".repeat(150),
      nested: { list: Array.from({ length: 30 }, (_, index) => ({ index, name: `name "${index}"` })) },
      "quoted-name": { pattern: '^it\'s "quoted"$', flag: true, nothing: null },
    };
    const text = `export const value: object = ${printValue(value, 0, 29)};\n`;
    assert.is(await format(text, { parser: "babel-ts", printWidth: 120 }), text);
  });

  test("escapes U+2028 and U+2029", () => {
    assert.is(printLine("a\u2028b\u2029c"), '"a\\u2028b\\u2029c"');
  });
});
