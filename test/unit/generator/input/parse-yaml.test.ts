import { formatDiagnostic } from "#generator/diagnostic.js";
import { describeJsonError, parseYaml } from "#generator/read/yaml/parse-yaml.js";
import { assert, suite } from "../../../support/suite.js";

const valuesOf = (text: string) => parseYaml("a.yaml", text).documents.map(({ value }) => value);
const problemsOf = (text: string) => parseYaml("a.yaml", text).diagnostics.map(formatDiagnostic);

suite("parseYaml", (test) => {
  test("returns all documents but empty ones", () => {
    assert.equal(valuesOf("---\n# nothing\n---\na: 1\n---\n---\n- b\n...\n"), [{ a: 1 }, ["b"]]);
    assert.equal(valuesOf(""), []);
    assert.equal(valuesOf("# only a comment\n"), []);
    assert.equal(valuesOf("\ufeffa: 1\r\nb: 2\r\n"), [{ a: 1, b: 2 }]);
  });

  test("reads JSON, also with tabs", () => {
    assert.equal(valuesOf('{\n\t"a": {\n\t\t"b": [1, "x", null, true]\n\t}\n}\n'), [
      { a: { b: [1, "x", null, true] } },
    ]);
  });

  test("keeps YAML 1.1 booleans and dates as strings", () => {
    assert.equal(valuesOf("[yes, no, on, off, y, =, 2001-01-01, 0x1F]"), [
      ["yes", "no", "on", "off", "y", "=", "2001-01-01", 31],
    ]);
  });

  test("reads __proto__ and constructor as ordinary keys", () => {
    const [value] = valuesOf("__proto__: { a: 1 }\nconstructor: 2\nhasOwnProperty: 3\n");
    assert.equal(Object.keys(value as object), ["__proto__", "constructor", "hasOwnProperty"]);
    assert.is(Object.getPrototypeOf(value), Object.prototype);
    assert.is(({} as { a?: number }).a, undefined);
  });

  test("omits a document with an error and returns the others", () => {
    const { documents, diagnostics } = parseYaml("a.yaml", "a: [1\n---\nb: 2\n");
    assert.equal(
      documents.map(({ value }) => value),
      [{ b: 2 }],
    );
    assert.is(diagnostics.length, 1);
    assert.equal(diagnostics[0]?.position?.line, 1);
  });

  test("rejects a duplicate key with both positions, in any style and in JSON", () => {
    assert.equal(problemsOf("a:\n  b: 1\n  'b': 2\n"), [
      'a.yaml:3:3: error duplicate-key: duplicate key "b", first at a.yaml:2:3\n  at a.b\n  remove one of the two',
    ]);
    const [both] = problemsOf("removed:\n  a: {}\nb: 1\nremoved:\n  c: {}\n");
    assert.match(both ?? "", '\n  move the entries of both to one "removed", and remove the other');
    assert.equal(problemsOf('{"l": [{}, {"b": 1,\n "b": 2}]}'), [
      'a.yaml:2:2: error duplicate-key: duplicate key "b", first at a.yaml:1:13\n  at l[1].b\n  remove one of the two',
    ]);
  });

  test("reports wrong indentation with the cause and the allowed indents", () => {
    const deep = (line: number, column: number, by: number) => [
      `${line + 1}:${column}: the line is indented deeper than line ${line}, which already has a value`,
      `indent it by ${by} like line ${line}, or quote the value of line ${line} if it continues here`,
    ];
    const lost = (place: string, by: number, hint: string) => [
      `${place}: invalid indentation by ${by}: no line above that it can follow has it`,
      `indent it ${hint}`,
    ];
    const cases: [text: string, expected: string[]][] = [
      ["a: 1\n  b: 2\n", deep(1, 3, 0)],
      ["s:\n  a: x\n   b: 2\n", deep(2, 4, 2)],
      ["s:\n  - a: 1\n      b: 2\n", deep(2, 7, 4)],
      ["s:\r\n    a: 1\r\n  b: 2\r\n", lost("3:3", 2, "by 4 to follow line 2, or by 0 to follow line 1")],
      ["s:\n  - a: 1\n\n   # x\n   b: 2\n", lost("5:4", 3, "by 4 to follow line 2, or by 0 to follow line 1")],
      ["s:\n  - 1\n - 2\n", lost("3:2", 1, "by 2 to follow line 2")],
      ["x: 1\n---\n  a: 1\nb: 2\n", lost("4:1", 0, "by 2 to follow line 3")],
      ["s:\n  a: 1\n  - 2\n", ["3:3: unexpected list item among keys", "indent the list deeper than its key"]],
      [
        "s:\n  - 2\n  a: 1\n",
        ["3:3: unexpected key among list items", 'begin the line with "- ", or indent it as another key'],
      ],
      [
        "s:\n\ta: 1\n",
        ["2:2: the line is indented with a tab", "indent it with spaces: YAML does not allow tabs there"],
      ],
    ];
    for (const [text, [problem, hint]] of cases)
      assert.equal(problemsOf(text), [
        `a.yaml:${problem?.replace(": ", ": error yaml-syntax: invalid YAML: ")}\n  ${hint}`,
      ]);
  });

  test("reports the first syntax error with a hint", () => {
    const entry = "add a space after the colon or the hyphen, or a colon after the key";
    const json = "use double quotes for names and strings, and a comma between entries, but not after the last";
    const commas = "separate entries in brackets with commas";
    const marks = "resolve the conflict, and remove its markers";
    const cases: [text: string, problem: string, hint: string][] = [
      ["a:1\nb: 2\n", '1:1: invalid YAML: the line is neither "key: value" nor "- item"', entry],
      ["a: b: c\n", '1:4: invalid YAML: the value contains ": "', "quote the value"],
      [
        "a: [1\nb: 2\n",
        '1:4: invalid YAML: "[" is not closed',
        'close it with "]", and indent the lines in it deeper than its key',
      ],
      [
        "a: {\n  b: [1,\n}\n",
        '2:6: invalid YAML: "[" is not closed',
        'close it with "]", and indent the lines in it deeper than its key',
      ],
      ["a: 'b\nc: 1\n", "1:4: invalid YAML: missing closing quote of a string", "close it with '"],
      ["a: 1\n<<<<<<< ours\nb: [\n", "2:1: unresolved merge conflict", "resolve the conflict, and remove its markers"],
      ["a: {\n  b: 1\n  c: 2\n}\n", "3:3: invalid YAML: missing comma before this entry", commas],
      ["a: [\n  b: 1\n  c: 2\n]\n", "3:3: invalid YAML: missing comma before this entry", commas],
      ['{ "a": 1,\n||||||| base\n"b": 2 }\n', "2:1: unresolved merge conflict", marks],
      ['{ "a": 1,\n  "b": [2\n}\n', '2:8: invalid JSON: "[" is not closed', json],
      ['{ "a": 1\n  "b": 2 }\n', "2:3: invalid JSON: missing comma before this entry", json],
      ["{\n", '1:1: invalid JSON: "{" is not closed', json],
      ['{ "a": "b\n}\n', "1:8: invalid JSON: missing closing quote of a string", json],
    ];
    for (const [text, problem, hint] of cases)
      assert.equal(problemsOf(text), [`a.yaml:${problem.replace(": ", ": error yaml-syntax: ")}\n  ${hint}`]);
  });

  test("reports errors of JSON.parse in one line with their position", () => {
    const cases: [text: string, problem: string][] = [
      ['{ "a": [1,\n  ]\n}\n', '2:3: invalid JSON: unexpected "]"'],
      [`{ "a": [${"1, ".repeat(30)}\n  ],\n  "b": [1]\n}\n`, '2:3: invalid JSON: unexpected "]"'],
      ["\n// a\n{}", '2:1: invalid JSON: unexpected "/"'],
      ['{ "a": 1, // a\n  "b": 2 }', "1:11: invalid JSON: expected double-quoted property name"],
      ['{ "a": "b,\n  "c": "d"\n}\n', "1:8: invalid JSON: missing closing quote of a string"],
      ['{ "a": "b\t"\n}\n', "1:10: invalid JSON: bad control character in string literal"],
      ['{ "a": "b', "1:8: invalid JSON: missing closing quote of a string"],
      ['{ "a": 1,\n<<<<<<< ours\n  "b": 2\n}\n', "2:1: unresolved merge conflict"],
    ];
    for (const [text, problem] of cases) {
      assert.throws(
        () => JSON.parse(text),
        (error) => {
          const { message, position } = describeJsonError("a.json", text, error);
          assert.is(`${position?.line}:${position?.column}: ${message}`, problem);
          return true;
        },
      );
    }
  });

  test("resolves aliases and merge keys", () => {
    assert.equal(valuesOf("a: &a { x: 1 }\nb: *a\nc: { <<: *a, y: 2 }\n"), [
      { a: { x: 1 }, b: { x: 1 }, c: { x: 1, y: 2 } },
    ]);
  });

  test("rejects undefined and recursive aliases, and more than 1000", () => {
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
    assert.match(String(problem), /error yaml-alias: aliases expand to more than 100000 values/);
    assert.match(
      problemsOf(`a: &a 1\nb: [${"*a,".repeat(1001)}]`).join(),
      /error yaml-alias: too many aliases: must be at most 1000/,
    );
  });

  test("rejects custom tags with their position", () => {
    assert.equal(problemsOf("a: 1\nb:   !secondary.x\n"), [
      'a.yaml:2:6: error yaml-tag: YAML tag "!secondary.x" is not allowed\n' +
        '  remove the tag, or quote a string that starts with "!"',
    ]);
    assert.equal(problemsOf("a: !!binary aGk=\n").length, 1);
    assert.equal(problemsOf("a: !!str 1\nb: ! x\n"), []);
  });
});
