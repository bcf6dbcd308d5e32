import fc from "../../../support/fast-check.js";
import { stringify } from "yaml";
import { parseYaml } from "#generator/read/yaml/parse-yaml.js";
import { formatPath, type YamlDocument } from "#generator/read/yaml/yaml-document.js";
import { assert, suite } from "../../../support/suite.js";

function documentOf(text: string): YamlDocument {
  const { documents, diagnostics } = parseYaml("a.yaml", text);
  assert.equal(diagnostics, []);
  return documents[0]!;
}

function placeOf({ position: { line, column } }: { position: { line: number; column: number } }): string {
  return `${line}:${column}`;
}

suite("YamlDocument", (test) => {
  const text = `a:
  b: [1, { "c": x }]
  d: &d
    e: f
g: *d
h:
  <<: *d
  i:
`;

  test("finds the position of keys and values by path", () => {
    const document = documentOf(text);
    assert.is(placeOf(document.valueAt(["a", "b", 1, "c"])), "2:17");
    assert.is(placeOf(document.keyAt(["a", "b", 1, "c"])), "2:12");
    assert.is(placeOf(document.valueAt([])), "1:1");
  });

  test("returns the position of the anchor for an alias or a merge", () => {
    const document = documentOf(text);
    assert.is(placeOf(document.valueAt(["g", "e"])), "4:8");
    assert.is(placeOf(document.valueAt(["h", "e"])), "4:8");
  });

  test("returns the position of the closest parent of a missing value", () => {
    const document = documentOf(text);
    assert.is(placeOf(document.valueAt(["a", "x", "y"])), "2:3");
    assert.is(placeOf(document.keyAt(["h", "i"])), "8:3");
  });

  test("counts lines from the start of the file in later documents", () => {
    const [, second] = parseYaml("a.yaml", "a: 1\n---\n\nb: 2\n").documents;
    assert.is(placeOf(second!.valueAt(["b"])), "4:4");
  });

  test("formats paths as Kubernetes does, with long names truncated", () => {
    assert.is(formatPath(["spec", "a-b", 0, "c d", "__proto__"]), 'spec.a-b[0]["c d"].__proto__');
    const long = "x".repeat(20_000);
    assert.is(formatPath(["spec", long, `${long} y`]), `spec.${"x".repeat(100)}….${"x".repeat(100)}…`);
  });
});

suite("position of a character in a scalar", (test) => {
  const cases: [style: string, text: string][] = [
    ["plain", "when: primary.x === y"],
    ["plain over lines", "when: primary.x\n  === 1\n\n  || y"],
    ["single quotes", "when: 'it''s + y'"],
    ["double quotes with escapes", 'when: "\\u0061\\"\\x62\\n\\t\\\n   \\  y"'],
    ["double quotes with a pair of units", 'when: "\\U0001F600 y"'],
    ["literal block", "when: |\n  a &&\n    y\n"],
    ["literal block with a comment", "when: |- # a comment, why not\n  y\n"],
    ["folded block", "when: >-\n  a &&\n  y\n"],
    ["indented block", "when: |2\n    a\n      y\n"],
    ["flow", "{ when: a.z === y }"],
    ["carriage return", "when: |\r\n  a\t&&\r\n  y\r\n"],
    ["emoji", 'when: "\u{1F600} + y"'],
    ["tag and anchor", "when: !!str &a 'y'"],
  ];
  for (const [style, source] of cases)
    test(`is found in style ${style}`, () => {
      const document = documentOf(source);
      const value = (document.value as { when: string }).when;
      const { line, column } = document.characterAt(["when"], value.lastIndexOf("y"));
      const before = source.slice(0, source.lastIndexOf("y")).split("\n");
      assert.is(`${line}:${column}`, `${before.length}:${before.at(-1)!.length + 1}`);
    });

  test("is found for any text in any style", () => {
    const words = fc.array(
      fc.constantFrom("a", "bc", "'", '"', "\\", "#", ":", "\n", " ", "\u{1F600}", "é", "{", "- "),
      {
        maxLength: 12,
      },
    );
    const styles = fc.constantFrom("PLAIN", "QUOTE_SINGLE", "QUOTE_DOUBLE", "BLOCK_LITERAL", "BLOCK_FOLDED");
    fc.assert(
      fc.property(words, words, styles, (before, after, style) => {
        const text = `${before.join("")}@${after.join("")}`;
        const source = stringify({ list: [{ when: text }] }, { defaultStringType: style as "PLAIN", lineWidth: 20 });
        const document = documentOf(source);
        // Folding does not always keep the text; what counts is the text that is read.
        const { when } = (document.value as { list: [{ when: string }] }).list[0];
        const { line, column } = document.characterAt(["list", 0, "when"], when.indexOf("@"));
        assert.is(source.split("\n")[line - 1]?.[column - 1], "@", source);
      }),
      { numRuns: 500 },
    );
  });
});
