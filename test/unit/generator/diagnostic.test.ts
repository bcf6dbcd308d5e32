import {
  didYouMean,
  formatDiagnostic,
  quote,
  shellWord,
  sortDiagnostics,
  type Diagnostic,
} from "#generator/diagnostic.js";
import { assert, suite } from "../../support/suite.js";

suite("Diagnostic", (test) => {
  const diagnostic: Diagnostic = {
    severity: "error",
    rule: "some-rule",
    message: "first\nsecond",
    position: { file: "a.yaml", line: 2, column: 3 },
    path: "spec.a",
    hint: "one\ntwo",
  };

  test("has position, severity, and rule on its first line, and indents the others", () => {
    assert.is(formatDiagnostic(diagnostic), "a.yaml:2:3: error some-rule: first\n  second\n  at spec.a\n  one\n  two");
    assert.is(formatDiagnostic({ severity: "warning", rule: "r", message: "m" }), "warning r: m");
  });

  test("escapes control characters, and truncates long quoted text", () => {
    const evil = "\u001b[2J\r\u2028\u202e\u200b\u0085\u0000";
    const text = formatDiagnostic({
      ...diagnostic,
      message: evil,
      path: evil,
      position: { file: evil, line: 1, column: 1 },
    });
    assert.not.match(text.replaceAll("\n", ""), /[\u0000-\u001f\u007f-\u009f\u2028\u202e\u200b]/);
    assert.is(quote('a\nb"\u001b'), '"a\\nb\\"\\u001b"');
    assert.is([...quote("x".repeat(1000))].length, 103);
    assert.is(quote("\u{1f600}".repeat(100)), `"${"\u{1f600}".repeat(100)}"`);
    assert.is(quote("\u{1f600}".repeat(1000)), `"${"\u{1f600}".repeat(100)}…"`);
  });

  test("truncates words beyond 100 characters, but not long paths", () => {
    const long = "x".repeat(20_000);
    const text = formatDiagnostic({ ...diagnostic, message: `no ${long}.y or ${long}`, hint: `write ${long}` });
    assert.match(text, `no ${"x".repeat(100)}… or ${"x".repeat(100)}…\n`);
    assert.match(text, `write ${"x".repeat(100)}…`);
    const path = `spec.${"name.".repeat(50)}`;
    assert.match(formatDiagnostic({ ...diagnostic, message: path }), path);
  });

  test("quotes a word of a command where a shell would change it", () => {
    for (const word of ["a/b-c_1.yaml", "@x/y", "a=b:c,d+e%"]) assert.is(shellWord(word), word);
    for (const word of ["a b", "a\\b", "$a", "a*", ""]) assert.is(shellWord(word), `'${word}'`);
    assert.is(shellWord("it's"), "'it'\\''s'");
  });

  test("suggests similar names, and ignores case first", () => {
    assert.equal(didYouMean("databse", ["web", "database"]), { hint: 'did you mean "database"?' });
    assert.equal(didYouMean("configmap", ["configMap", "configmaps"]), { hint: 'did you mean "configMap"?' });
    assert.is(didYouMean("xyz", ["web", "database"]), undefined);
    assert.is(didYouMean("a", ["b"]), undefined);
    assert.is(didYouMean("a".repeat(100_000), ["web"]), undefined);
  });

  test("sorts by file, line, and column, those without a position first", () => {
    const at = (file: string, line: number, column: number): Diagnostic => ({
      ...diagnostic,
      position: { file, line, column },
    });
    const { position: _, ...nowhere } = diagnostic;
    const sorted = [nowhere, at("a", 1, 2), at("a", 2, 1), at("a", 10, 1), at("b", 1, 1)];
    assert.equal(sortDiagnostics([...sorted].reverse()), sorted);
  });
});
