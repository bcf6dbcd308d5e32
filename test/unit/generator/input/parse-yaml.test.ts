import { formatDiagnostic } from "#generator/diagnostic.js";
import { parseYaml } from "#generator/input/yaml/parse-yaml.js";
import { assert, suite } from "../../../support/suite.js";

const valuesOf = (text: string) => parseYaml("a.yaml", text).documents.map(({ value }) => value);
const problemsOf = (text: string) => parseYaml("a.yaml", text).diagnostics.map(formatDiagnostic);

suite("parseYaml", (test) => {
  test("every document counts, and empty ones do not", () => {
    assert.equal(valuesOf("---\n# nothing\n---\na: 1\n---\n---\n- b\n...\n"), [{ a: 1 }, ["b"]]);
    assert.equal(valuesOf(""), []);
    assert.equal(valuesOf("# only a comment\n"), []);
    assert.equal(valuesOf("\ufeffa: 1\r\nb: 2\r\n"), [{ a: 1, b: 2 }]);
  });

  test("JSON is YAML, also with tabs", () => {
    assert.equal(valuesOf('{\n\t"a": {\n\t\t"b": [1, "x", null, true]\n\t}\n}\n'), [
      { a: { b: [1, "x", null, true] } },
    ]);
  });

  test("words of YAML 1.1 and dates stay texts", () => {
    assert.equal(valuesOf("[yes, no, on, off, y, =, 2001-01-01, 0x1F]"), [
      ["yes", "no", "on", "off", "y", "=", "2001-01-01", 31],
    ]);
  });

  test("names of JavaScript's own are ordinary keys", () => {
    const [value] = valuesOf("__proto__: { a: 1 }\nconstructor: 2\nhasOwnProperty: 3\n");
    assert.equal(Object.keys(value as object), ["__proto__", "constructor", "hasOwnProperty"]);
    assert.is(Object.getPrototypeOf(value), Object.prototype);
    assert.is(({} as { a?: number }).a, undefined);
  });

  test("a document with an error is left out, the others are kept", () => {
    const { documents, diagnostics } = parseYaml("a.yaml", "a: [1\n---\nb: 2\n");
    assert.equal(
      documents.map(({ value }) => value),
      [{ b: 2 }],
    );
    assert.is(diagnostics.length, 1);
    assert.equal(diagnostics[0]?.position?.line, 2);
  });

  test("a key that comes twice is an error that names both places, in any style and in JSON", () => {
    assert.equal(problemsOf("a:\n  b: 1\n  'b': 2\n"), [
      'a.yaml:3:3: error duplicate-key: key "b" is given twice, first at a.yaml:2:3\n  at a.b\n  keep one of the two',
    ]);
    const [both] = problemsOf("removed:\n  a: {}\nb: 1\nremoved:\n  c: {}\n");
    assert.match(both ?? "", '\n  put the entries of both under one "removed", and delete the other');
    assert.equal(problemsOf('{"l": [{}, {"b": 1,\n "b": 2}]}'), [
      'a.yaml:2:2: error duplicate-key: key "b" is given twice, first at a.yaml:1:13\n  at l[1].b\n  keep one of the two',
    ]);
  });

  test("aliases and merge keys are followed", () => {
    assert.equal(valuesOf("a: &a { x: 1 }\nb: *a\nc: { <<: *a, y: 2 }\n"), [
      { a: { x: 1 }, b: { x: 1 }, c: { x: 1, y: 2 } },
    ]);
  });

  test("aliases that refer to nothing, to what contains them or to too much are errors", () => {
    assert.equal(problemsOf("a: *b\n"), [
      'a.yaml:1:4: error yaml-alias: "*b" refers to an anchor that is not defined before it',
    ]);
    assert.equal(problemsOf("a: &a\n  - [*a]\n"), [
      'a.yaml:2:6: error yaml-alias: "*a" refers to a value that contains it',
    ]);
    const levels = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (const name of "bcdefghij") {
      const previous = String.fromCharCode(name.charCodeAt(0) - 1);
      levels.push(`${name}: &${name} [${`*${previous}, `.repeat(10)}]`);
    }
    const [problem] = problemsOf(levels.join("\n"));
    assert.match(String(problem), /error yaml-alias: aliases stand for more than 100000 values/);
    assert.match(problemsOf(`a: &a 1\nb: [${"*a,".repeat(1001)}]`).join(), /error yaml-alias: more than 1000 aliases/);
  });

  test("tags of applications are errors at their place", () => {
    assert.equal(problemsOf("a: 1\nb:   !secondary.x\n"), [
      'a.yaml:2:6: error yaml-tag: "!secondary.x" is read as a YAML tag, which has no meaning here\n' +
        '  put a text that starts with "!" into quotes',
    ]);
    assert.equal(problemsOf("a: !!binary aGk=\n").length, 1);
    assert.equal(problemsOf("a: !!str 1\nb: ! x\n"), []);
  });
});
