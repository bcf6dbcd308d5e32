import { parseExpression, type ParsedExpression } from "#generator/model/expression.js";
import { assert, suite } from "../../../support/suite.js";

function namesIn(text: string): readonly string[] {
  const parsed = parseExpression(text);
  if (parsed.kind === "problem") throw new Error(parsed.message);
  return parsed.names;
}

function problemIn(text: string): ParsedExpression & { kind: "problem" } {
  const parsed = parseExpression(text);
  if (parsed.kind !== "problem") throw new Error(`"${text}" was accepted`);
  return parsed;
}

suite("condition expression", (test) => {
  test("returns the global names it uses in a fixed order", () => {
    assert.equal(namesIn("context.retry.attempt > 0 && primary.spec.a === 1"), ["primary", "context"]);
    assert.equal(namesIn("true"), []);
    assert.equal(namesIn("secondary.primary?.context !== undefined"), ["secondary"]);
    assert.equal(namesIn("[1].some((primary) => primary > 0)"), []);
    assert.equal(namesIn("[{ a: 1 }].some(({ a: primary = 2 }) => primary > 0 && secondary === undefined)"), [
      "secondary",
    ]);
    assert.equal(namesIn("({ primary }).primary !== undefined"), ["primary"]);
    assert.equal(namesIn("({ primary: 1, ['secondary']: 2 })['primary'] === 1"), []);
    assert.equal(namesIn("`${context.retry.attempt}` === '0'"), ["context"]);
  });

  test("accepts comments, line breaks, and brackets in strings", () => {
    for (const text of ["true // )", "true /* ) */", "')' === ')'", "`)` === /\\)/.source", "\n  true\n", "(true)"])
      assert.is(parseExpression(text).kind, "expression", text);
  });

  test("rejects text that is not a single expression", () => {
    const texts = [
      "true); process.exit(); (true",
      "true;",
      "true }) => process.exit(); ({",
      "true) || (false",
      ")(",
      "",
      "  ",
      "// only a comment",
      "/* open",
      "`open",
      "'open",
      "true\n) + (1\n",
      "return true",
      "if (true) true",
      "const a = 1",
      "primary: true",
      "...primary",
      "<div />",
      "enum",
    ];
    for (const text of texts) problemIn(text);
  });

  test("rejects assignments, await, import, this, and function bodies", () => {
    const texts = [
      "primary.spec.a = true",
      "primary.spec.a += 1",
      "primary.spec.a ??= true",
      "({ a: primary.spec.a } = secondary)",
      "primary.spec.a++",
      "--primary.spec.a",
      "delete primary.spec.a",
      "await context",
      "import('node:fs')",
      "import.meta.url === ''",
      "new.target === undefined",
      "this === undefined",
      "arguments.length === 0",
      "(() => { return true })()",
      "(function () {})()",
      "class {}",
      "true, false",
      "/* @ts-ignore */ primary.nothing",
      "primary.a ===\u2028 'b'",
      "primary.a === '\u2029'",
    ];
    for (const text of texts) assert.match(problemIn(text).message, /^an expression cannot /, text);
  });

  test("reports an error at its offset within the text", () => {
    assert.is(problemIn("primary.a === && b").offset, "primary.a === ".length);
    assert.is(problemIn("true && (primary.a").offset, "true && (primary.a".length);
    assert.is(problemIn("a && (b = 1)").offset, "a && (".length);
    assert.is(problemIn("").offset, 0);
  });
});
