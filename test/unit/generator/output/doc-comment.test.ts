import { descriptionLinesOf, docLinesOf, renderDoc } from "#generator/emit/resource/shape.js";
import fc from "../../../support/fast-check.js";
import { loadLibrary } from "#generator/model/typescript.js";
import { assert, suite } from "../../../support/suite.js";

const compiler = loadLibrary("typescript");

suite("doc comment", (test) => {
  test("escapes comment ends and tags in descriptions", () => {
    const lines = descriptionLinesOf("ends */ here\r\n@daily is a schedule\r  @weekly too\u2028{@link x}\ttab");
    assert.equal(lines, ["ends *\\/ here", "\\@daily is a schedule", "  \\@weekly too", "{\\@link x}  tab"]);
  });

  test("contains no code and no unexpected tags for any description", () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom("*", "/", "@", "a", " ", "\n", "\r", "\u2028", "{", "}", "`", "\\", "\0"),
          maxLength: 300,
        }),
        (text) => {
          const source = `${renderDoc(docLinesOf({ description: text, pattern: text }, text))}\nexport const x = 1;`;
          const file = compiler.createSourceFile("x.ts", source, compiler.ScriptTarget.ESNext, true);
          assert.is(file.statements.length, 1);
          assert.ok(file.statements[0] !== undefined && compiler.isVariableStatement(file.statements[0]));
          const tags = compiler.getJSDocTags(file.statements[0]).map(({ tagName }) => tagName.text);
          assert.ok(
            tags.every((tag) => tag === "pattern" || tag === "default"),
            `${tags.join()} in ${source}`,
          );
        },
      ),
    );
  });

  test("has tags for the constraints of the schema", () => {
    const lines = docLinesOf(
      {
        description: "Deprecated: use other.",
        type: "integer",
        minimum: 0,
        exclusiveMinimum: true,
        maximum: 9,
        pattern: "a*/b",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
        "x-kubernetes-validations": [{ rule: "self > 1", message: "must\nbe more */" }],
      },
      3,
    );
    assert.equal(lines, [
      "Deprecated: use other.",
      "",
      "@deprecated",
      "@default 3",
      "@minimum 0 (exclusive)",
      "@maximum 9",
      "@pattern a*\\/b",
      "@listType map by a, b",
      "@validation must be more *\\/",
    ]);
  });

  test("omits a default that the API server does not apply", () => {
    assert.equal(docLinesOf({ type: "integer", default: 0 }, undefined), []);
  });

  test("has no trailing spaces, also where prose wraps", () => {
    const lines = descriptionLinesOf(`${"word ".repeat(21)} ${"other ".repeat(20)}`);
    assert.ok(lines.length > 1);
    for (const line of lines) assert.is(line, line.trimEnd());
  });

  test("wraps prose but not fenced code", () => {
    const long = "word ".repeat(60).trim();
    const lines = descriptionLinesOf(`${long}\n\`\`\`\n${long}\n\`\`\``);
    assert.is(lines.filter((line) => line.length > 110).length, 1);
    assert.is(lines.slice(0, -3).join(" "), long);
  });

  test("is omitted without a description", () => {
    assert.is(renderDoc(docLinesOf({ type: "string" }, undefined)), "");
    assert.is(renderDoc(docLinesOf({ description: " \n " }, undefined)), "");
  });
});
