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
      'a.yaml:3:3: error duplicate-key: key "b" is given twice, first at a.yaml:2:3\n  at a.b\n  keep one of the two',
    ]);
    const [both] = problemsOf("removed:\n  a: {}\nb: 1\nremoved:\n  c: {}\n");
    assert.match(both ?? "", '\n  put the entries of both under one "removed", and delete the other');
    assert.equal(problemsOf('{"l": [{}, {"b": 1,\n "b": 2}]}'), [
      'a.yaml:2:2: error duplicate-key: key "b" is given twice, first at a.yaml:1:13\n  at l[1].b\n  keep one of the two',
    ]);
  });

  test("reports wrong indentation with the cause and the allowed indents", () => {
    const deep = (line: number, column: number, by: number) => [
      `${line + 1}:${column}: the line is indented deeper than line ${line}, which has a value already`,
      `indent it by ${by} as line ${line}, or put the value of line ${line} into quotes if it goes on here`,
    ];
    const lost = (place: string, by: number, hint: string) => [
      `${place}: no line above that it can follow is indented by ${by}`,
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
      ["s:\n  a: 1\n  - 2\n", ["3:3: a list item stands among keys", "indent the list deeper than its key"]],
      [
        "s:\n  - 2\n  a: 1\n",
        ["3:3: a key stands among list items", 'begin the line with "- ", or indent it as another key'],
      ],
      ["s:\n\ta: 1\n", ["2:2: the line is indented with a tab", "indent it with blanks: YAML takes no tabs there"]],
    ];
    for (const [text, [problem, hint]] of cases)
      assert.equal(problemsOf(text), [
        `a.yaml:${problem?.replace(": ", ": error yaml-syntax: not YAML: ")}\n  ${hint}`,
      ]);
  });

  test("reports the first syntax error with a hint", () => {
    const entry = "write a blank after the colon or the hyphen, or a colon after the key";
    const json = "JSON has names and texts in double quotes, a comma between two entries, and none after the last";
    const commas = "entries in brackets have commas between them";
    const marks = "finish the merge, and delete its marks";
    const cases: [text: string, problem: string, hint: string][] = [
      ["a:1\nb: 2\n", '1:1: not YAML: the line is neither "key: value" nor "- item"', entry],
      ["a: b: c\n", '1:4: not YAML: the value has ": " in it', "put the value into quotes"],
      [
        "a: [1\nb: 2\n",
        '1:4: not YAML: "[" is not closed',
        'close it with "]", and indent the lines in it deeper than its key',
      ],
      [
        "a: {\n  b: [1,\n}\n",
        '2:6: not YAML: "[" is not closed',
        'close it with "]", and indent the lines in it deeper than its key',
      ],
      ["a: 'b\nc: 1\n", "1:4: not YAML: a text in quotes is not closed", "close it with '"],
      [
        "a: 1\n<<<<<<< ours\nb: [\n",
        "2:1: the line is a mark of a merge that is not finished",
        "finish the merge, and delete its marks",
      ],
      ["a: {\n  b: 1\n  c: 2\n}\n", "3:3: not YAML: a comma is missing before this entry", commas],
      ["a: [\n  b: 1\n  c: 2\n]\n", "3:3: not YAML: a comma is missing before this entry", commas],
      ['{ "a": 1,\n||||||| base\n"b": 2 }\n', "2:1: the line is a mark of a merge that is not finished", marks],
      ['{ "a": 1,\n  "b": [2\n}\n', '2:8: not JSON: "[" is not closed', json],
      ['{ "a": 1\n  "b": 2 }\n', "2:3: not JSON: a comma is missing before this entry", json],
      ["{\n", '1:1: not JSON: "{" is not closed', json],
      ['{ "a": "b\n}\n', "1:8: not JSON: a text in quotes is not closed", json],
    ];
    for (const [text, problem, hint] of cases)
      assert.equal(problemsOf(text), [`a.yaml:${problem.replace(": ", ": error yaml-syntax: ")}\n  ${hint}`]);
  });

  test("reports errors of JSON.parse in one line with their position", () => {
    const cases: [text: string, problem: string][] = [
      ['{ "a": [1,\n  ]\n}\n', '2:3: not JSON: unexpected "]"'],
      [`{ "a": [${"1, ".repeat(30)}\n  ],\n  "b": [1]\n}\n`, '2:3: not JSON: unexpected "]"'],
      ["\n// a\n{}", '2:1: not JSON: unexpected "/"'],
      ['{ "a": 1, // a\n  "b": 2 }', "1:11: not JSON: expected double-quoted property name"],
      ['{ "a": "b,\n  "c": "d"\n}\n', "1:8: not JSON: a text in quotes is not closed"],
      ['{ "a": "b\t"\n}\n', "1:10: not JSON: bad control character in string literal"],
      ['{ "a": "b', "1:8: not JSON: a text in quotes is not closed"],
      ['{ "a": 1,\n<<<<<<< ours\n  "b": 2\n}\n', "2:1: the line is a mark of a merge that is not finished"],
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
    assert.match(String(problem), /error yaml-alias: aliases stand for more than 100000 values/);
    assert.match(problemsOf(`a: &a 1\nb: [${"*a,".repeat(1001)}]`).join(), /error yaml-alias: more than 1000 aliases/);
  });

  test("rejects custom tags with their position", () => {
    assert.equal(problemsOf("a: 1\nb:   !secondary.x\n"), [
      'a.yaml:2:6: error yaml-tag: "!secondary.x" is read as a YAML tag, which has no meaning here\n' +
        '  put a text that starts with "!" into quotes',
    ]);
    assert.equal(problemsOf("a: !!binary aGk=\n").length, 1);
    assert.equal(problemsOf("a: !!str 1\nb: ! x\n"), []);
  });
});
