import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { parseManifests, parseYaml } from "#generator/read/yaml/parse-yaml.js";
import { listCorpusProjects, hasCorpus, readCorpusFiles } from "../../../support/kinds/corpus.js";
import { isThorough } from "../../../support/runs.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

const valuesOf = (text: string) => parseManifests("a.yaml", text).documents.map(({ value }) => value);
const problemsOf = (text: string) => parseManifests("a.yaml", text).diagnostics.map(formatDiagnostic);
const readByOther = (text: string) => parseYaml("a.yaml", text, { scalars: "kubectl" });

suite("parseManifests", (test) => {
  test("rejects a mapping or a list as a key with its position, as kubectl does", () => {
    for (const [text, place] of [
      ["a: 1\n? b: true\n: 1\n", "2:3"],
      ["a: 1\n?   b: true\n", "2:5"],
      ["a: 1\n{ b: 1 }: 2\n", "2:3"],
      ["a: { ? { b: true } : 1 }\n", "1:10"],
    ])
      assert.equal(problemsOf(String(text)), [
        `a.yaml:${place}: error yaml-key: a mapping cannot be a key: must be a string, a number or a boolean`,
      ]);
    for (const text of [
      "a: 1\n[b]: 2\n",
      "- [a, b]: 1\n",
      "a: { b: 1, [c,\n d]: 2 }\n",
      "? [a]\n: 1\n",
      "? - a\n: 1\n",
      "!!seq [a]: 1\n",
    ])
      assert.match(problemsOf(text).join(), /yaml-key: a list cannot be a key/, text);
  });

  test("accepts strings that look like such keys", () => {
    for (const text of ["a: |\n  see [1]: there\n", 'a: "see {b}: [c]: there"\n', "a: |\n  b\n  ? has(c) : true\n"])
      assert.equal(problemsOf(text), []);
  });

  test("reads plain scalars as kubectl does", () => {
    // Recorded from `kubectl label --local -o json`.
    const recorded: [string, unknown][] = [
      ...["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "TRUE"].map((text): [string, unknown] => [
        text,
        true,
      ]),
      ...["n", "N", "no", "off", "Off", "OFF", "false", "False"].map((text): [string, unknown] => [text, false]),
      ...["oN", "=", "1:30", "2020-01-01", "2020-01-01T00:00:00Z", "1e", "_1", "0b", "0b12"].map(
        (text): [string, unknown] => [text, text],
      ),
      ...["~", "null", "Null", "NULL"].map((text): [string, unknown] => [text, null]),
      ...([
        ["0755", 493],
        ["-0755", -493],
        ["0o755", 493],
        ["08", 8],
        ["00", 0],
        ["-0", 0],
        ["+1", 1],
        ["0O7", 7],
      ] as const),
      ...([
        ["0b11", 3],
        ["-0b11", -3],
        ["0x1F", 31],
        ["-0x10", -16],
        ["0x_1F", 31],
        ["0_7", 7],
        ["1__0", 10],
      ] as const),
      ...([
        ["1_000", 1000],
        ["1_", 1],
        ["1_0.5", 10.5],
        ["1_0e1_0", 1e11],
        [".5_0", 0.5],
        ["1.50", 1.5],
      ] as const),
      ...([
        ["1e3", 1000],
        [".5", 0.5],
        ["5.", 5],
        ["+.5", 0.5],
        ["-.5", -0.5],
        ["9223372036854775807", 2 ** 63],
      ] as const),
    ].map(([text, value]) => [text, value]);
    for (const [text, value] of recorded) {
      assert.equal(valuesOf(`a: ${text}\n`), [{ a: value }], text);
      assert.equal(
        readByOther(`a: ${text}\n`).documents.map((document) => document.value),
        [{ a: value }],
        `${text}, by the parser that knows positions`,
      );
      assert.equal(valuesOf(`a: "${text}"\n`), [{ a: text }], `"${text}"`);
    }
  });

  test("reads keys as kubectl does", () => {
    assert.equal(valuesOf("on: a\n2020-01-01: b\n0x10: c\n1.50: d\n"), [
      { true: "a", "2020-01-01": "b", "16": "c", "1.5": "d" },
    ]);
  });

  test("decodes !!binary, and ignores custom tags with a warning, as kubectl does", () => {
    const text =
      'a: !!binary aGk=\nb: !!binary |\n  aGVs\n  bG8=\nc: !<tag:yaml.org,2002:binary> ""\n? !!binary ZA==\n: 1\n';
    assert.equal(problemsOf(text), []);
    assert.equal(valuesOf(text), [{ a: "hi", b: "hello", c: "", d: 1 }]);
    assert.match(
      problemsOf("a: !!binary aGk\n").join(),
      /1:4: error yaml-syntax: .*!!binary value contains invalid base64/,
    );
    assert.equal(valuesOf("a: !secret 5\nb: !list [1]\n"), [{ a: "5", b: [1] }]);
    assert.equal(problemsOf("a: !secret 5\n"), [
      'a.yaml:1:4: warning yaml-tag: kubectl ignores the YAML tag "!secret"\n  remove the tag, or quote a string that starts with "!"',
    ]);
  });

  test("rejects keys that are equal in JSON, and shows how each is written", () => {
    for (const [first, second] of [
      ["1", "1.0"],
      ["1", "0x1"],
      ['"1"', "1"],
      ["on", "true"],
    ] as const) {
      const [problem = ""] = problemsOf(`${first}: a\n${second}: b\n`);
      const key = first === "on" ? "true" : "1";
      assert.ok(
        problem.startsWith(
          `a.yaml:2:1: error duplicate-key: keys ${first} and ${second} are both "${key}" in JSON, so kubectl drops one of them, first at a.yaml:1:1`,
        ),
        problem,
      );
    }
  });

  test("warns about scalars that kubectl reads as another type", () => {
    assert.equal(problemsOf('a: "on"\nb:\n  - on\n  - 0755\n  - 1_0\n  - true\n  - 0x1F\n'), [
      'a.yaml:3:5: warning yaml-scalar: kubectl reads "on" as true\n  use true, or quote it if it is a string',
      'a.yaml:4:5: warning yaml-scalar: kubectl reads "0755" as 493\n  use 493, or quote it if it is a string',
      'a.yaml:5:5: warning yaml-scalar: kubectl reads "1_0" as 10\n  use 10, or quote it if it is a string',
    ]);
  });

  test("accepts a quoted string that continues at the indentation of its key", () => {
    const text = "spec:\n  single: 'first\n  second\n\n  third'\n  double: \"a\n  b\"\n  after: 1\n";
    const { documents, diagnostics } = parseManifests("a.yaml", text);
    assert.equal(diagnostics, []);
    assert.equal(documents[0]?.value, { spec: { single: "first second\nthird", double: "a b", after: 1 } });
    // The parser that knows positions stumbles over it: the nearest value around is named.
    assert.equal(documents[0]?.valueAt(["spec", "after"]).position, { file: "a.yaml", line: 2, column: 3 });
  });

  test("returns the errors of parseYaml", () => {
    for (const text of [
      "a: 1\nb: 2\na: 3\n",
      "a: !secret b\n",
      "a: [1\n",
      "a: *b\n",
      "a: &a [*a]\n",
      "a: .inf\n",
      "a: 1e400\n",
      'a: "\\ud800"\n',
      "a: { <<: 1 }\n",
      "a: 2\n\tb: 3\n",
    ]) {
      const expected = readByOther(text).diagnostics;
      assert.ok(expected.length > 0, text);
      assert.equal(parseManifests("a.yaml", text).diagnostics, expected, text);
    }
  });

  test("resolves aliases up to a limit", () => {
    assert.equal(valuesOf("a: &a { x: 1 }\nb: *a\nc: { <<: *a, z: on }\n"), [
      { a: { x: 1 }, b: { x: 1 }, c: { x: 1, z: true } },
    ]);
    const levels = Array.from(
      { length: 9 },
      (_, level) =>
        `l${level + 1}: &l${level + 1} [${"*l" + level + ", "}*l${level}, *l${level}, *l${level}, *l${level}]`,
    );
    assert.match(problemsOf(["l0: &l0 [1, 2]", ...levels].join("\n")).join("\n"), /yaml-alias/);
  });

  test("reads __proto__ and constructor as ordinary keys", () => {
    const [value] = valuesOf("__proto__: { a: 1 }\nconstructor: 2\n");
    assert.equal(Object.keys(value as object), ["__proto__", "constructor"]);
    assert.is(Object.getPrototypeOf(value), Object.prototype);
  });

  test("finds positions in every document, with empty ones in between", () => {
    const { documents } = parseManifests("a.yaml", "# nothing\n---\n---\na: 1\n---\n---\nb: { c: 2 }\n");
    assert.equal(
      documents.map(({ value }) => value),
      [{ a: 1 }, { b: { c: 2 } }],
    );
    assert.equal(documents[1]?.valueAt(["b", "c"]).position, { file: "a.yaml", line: 7, column: 9 });
    assert.match(documents[1]?.valueAt(["b", "c"]).path ?? "", /^document \d, b\.c$/);
  });

  test("reads JSON like parseYaml, also in several documents", () => {
    const documents = [
      '{"a": "on", "b": [1, 2.5, -1e3, null, true]}',
      '{\n  "c": {"d\\u00e9": "---\\n"}\n}',
      "null",
      "{}",
    ];
    const text = `${documents.join("\n---\n")}\n`;
    const [ours, other] = [parseManifests("a.yaml", text), readByOther(text)];
    assert.equal(ours.diagnostics, []);
    assert.equal(
      ours.documents.map(({ value }) => value),
      other.documents.map(({ value }) => value),
    );
    assert.equal(ours.documents[1]?.keyAt(["c", "dé"]), other.documents[1]?.keyAt(["c", "dé"]));
    assert.equal(valuesOf('{"__proto__": {"a": 1}, "a": "\\"b\\": c"}'), [
      Object.fromEntries([
        ["__proto__", { a: 1 }],
        ["a", '"b": c'],
      ]),
    ]);
    // A text that looks like a key only takes longer.
    assert.equal(valuesOf(JSON.stringify({ a: '\\":' })), [{ a: '\\":' }]);
  });

  test("rejects duplicate keys, infinite numbers, and lone surrogates in JSON", () => {
    for (const text of ['{"a": 1, "a": 2}', '{"b": {"a": 1, "a" : 2}}', '{"a": 1e400}', '{"a": "\\ud800"}', '{"a": 1'])
      assert.ok(problemsOf(text).length > 0, text);
  });

  for (const { name, files } of collections())
    test(`reads the same as parseYaml from ${name}`, () => {
      assert.ok(files.length > 0);
      for (const { file, text } of files) {
        const [ours, other] = [parseManifests(file, text), parseYaml(file, text, { scalars: "kubectl" })];
        const errors = parseAllDocuments(text).flatMap((document) => document.errors ?? []);
        if (errors.length > 0) continue;
        assert.equal(
          ours.documents.map(({ value }) => value),
          other.documents.map(({ value }) => value),
          file,
        );
        for (const [index, document] of ours.documents.entries())
          for (const path of [["kind"], ["metadata", "name"], ["spec", "versions", 0, "schema"]])
            assert.equal(document.keyAt(path), other.documents[index]?.keyAt(path), file);
      }
    });
});

interface Collection {
  readonly name: string;
  readonly files: readonly { readonly file: string; readonly text: string }[];
}

function collections(): Collection[] {
  const fixtures = join(repositoryRoot, "fixtures");
  const own = readdirSync(fixtures, { recursive: true, encoding: "utf8" })
    .filter((file) => /crds\/.*\.ya?ml$/.test(file))
    .map((file) => ({ file, text: readFileSync(join(fixtures, file), "utf8") }));
  const projects = hasCorpus && isThorough ? listCorpusProjects() : [];
  return [
    { name: "all fixtures", files: own },
    ...projects.map((name) => ({
      name,
      files: readCorpusFiles(name).map((file) => ({ file: file.name, text: file.text })),
    })),
  ];
}
