import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseDocument } from "yaml";
import { describeOmitted, formatDiagnostic, limitDiagnostics, type Diagnostic } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { generateTypes } from "#generator/generate-types.js";
import { runCommand } from "../../../support/command-line.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { createFolderWith, crdText, PLAIN_SCHEMA, workflowText } from "./project-text.js";

/** Marks that change the direction of text, and others that no reader sees. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

async function typesOf(schema: string, text = crdText(schema)) {
  await using folder = await createFolderWith({ "a.yaml": text });
  const { diagnostics } = await generateTypes({
    files: [join(folder.path, "a.yaml")],
    out: join(folder.path, "out"),
  });
  const entries = await readdir(join(folder.path, "out"), { recursive: true }).catch(() => []);
  const files = entries.filter((entry) => entry.endsWith(".ts"));
  const texts = await Promise.all(files.map((file) => readFile(join(folder.path, "out", file), "utf8")));
  return { text: texts.join("\n"), messages: diagnostics.map(formatDiagnostic).join("\n") };
}

/** Returns a YAML text as JSON, with its very integers. */
function jsonTextOf(text: string): string {
  const value: unknown = parseDocument(text, { intAsBigInt: true }).toJS();
  const marked = JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? `<${each}>` : each));
  return marked.replace(/"<(-?\d+)>"/g, "$1");
}

suite("hostile text", (test) => {
  test("rejects a lone surrogate with its position", async () => {
    for (const schema of [
      '{ type: object, description: "\\ud800" }',
      '{ type: object, properties: { "\\udc00": { type: string } } }',
      '{ type: object, properties: { a: { type: string, enum: ["x\\udbff"] } } }',
      '{ type: object, properties: { a: { type: string, default: "\\ud800\\ud800" } } }',
    ])
      assert.match(
        (await typesOf(schema)).messages,
        /a\.yaml:14:\d+: error yaml-text: invalid string .*: .* must occur in surrogate pairs/,
      );
    assert.is((await typesOf('{ type: object, description: "\\ud83d\\ude00" }')).messages, "");
  });

  test("escapes bidirectional control characters in generated files", async () => {
    for (const mark of ["\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"]) {
      const field = `{ type: string, description: "a${mark}b", enum: ["c${mark}d"], pattern: "e${mark}f" }`;
      const { text } = await typesOf(`{ type: object, properties: { "g${mark}h": ${field} } }`);
      assert.not.match(text, DIRECTIONS);
      const escape = `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`;
      for (const [before, after] of ["ab", "cd", "ef", "gh"]) assert.ok(text.includes(`${before}${escape}${after}`));
    }
  });

  test("rejects a condition with bidirectional control characters with its position", async () => {
    const when = "primary.spec?.a === true /* \u202e */";
    await using folder = await createFolderWith({
      "workflow.yaml": workflowText(when),
      "crds/a.yaml": crdText(PLAIN_SCHEMA),
    });
    const { diagnostics } = await generate({ project: folder.path });
    const found = diagnostics.find(({ severity }) => severity === "error");
    assert.match(
      found === undefined ? "" : formatDiagnostic(found),
      /yaml:9:\d+: error when-syntax: .* that change the text direction/,
    );
  });

  test("rejects numbers that JSON cannot represent, and warns about integers beyond 2^53", async () => {
    for (const value of [".nan", ".inf", "-.inf", "1e400"])
      for (const schema of [`{ type: object, maxProperties: ${value} }`, `{ type: object, default: { a: ${value} } }`])
        assert.match(
          (await typesOf(schema)).messages,
          /a\.yaml:14:\d+: error yaml-number: invalid value .*: not a JSON number/,
        );
    for (const value of ["9007199254740993", "-9223372036854775808", "9223372036854775807"])
      for (const field of [`default: ${value}`, `enum: [1, ${value}]`]) {
        const schema = `{ type: object, properties: { a: { type: integer, format: int64, ${field} } } }`;
        const { messages } = await typesOf(schema);
        assert.match(messages, /a\.yaml:14:\d+: warning inexact-number: (?:default|enum) has an integer beyond 2\^53/);
        assert.not.match(messages, "error");
      }
    const limits = "type: integer, maximum: 9223372036854775807";
    const within = `{ type: object, properties: { a: { ${limits} }, b: { type: integer, default: 9007199254740991 } } }`;
    assert.is((await typesOf(within)).messages, "");
    // The API server takes no default beside such a limit.
    assert.match(
      (await typesOf(`{ type: object, properties: { a: { ${limits}, default: 1 } } }`)).messages,
      "Maximum boundary value must be of type integer",
    );
  });

  for (const format of ["yaml", "json"])
    test(`reads integers of ${format} as int64 if they fit, else as float, as the API server does`, async () => {
      const messagesOf = async (field: string) => {
        const crd = crdText(`{ type: object, properties: { a: { ${field} } } }`);
        return (await typesOf("", format === "yaml" ? crd : jsonTextOf(crd))).messages;
      };
      const [largest, least] = ["9223372036854775807", "-9223372036854775808"];
      for (const value of [largest, least])
        for (const field of [
          `"type": "integer", "default": ${value}`,
          `"type": "integer", "format": "uint64", "default": ${value}`,
          `"type": "integer", "enum": [1, ${value}], "default": ${value}`,
          `"type": "array", "items": { "type": "integer", "format": "int64" }, "default": [${value}]`,
          `"type": "integer", "example": ${value}`,
          `"x-kubernetes-int-or-string": true, "default": ${value}`,
        ])
          assert.not.match(await messagesOf(field), "error", field);
      for (const field of [
        '"default": 9223372036854775808',
        '"default": -9223372036854775809',
        '"default": 18446744073709551615',
        `"format": "int32", "default": ${largest}`,
        `"minimum": ${largest}, "default": ${largest}`,
        `"maximum": ${largest}, "default": 0`,
      ])
        assert.match(await messagesOf(`"type": "integer", ${field}`), "error crd-schema", field);
      assert.not.match(await messagesOf('"type": "integer", "enum": [1, 18446744073709551615]'), "error");
    });

  test("generates the float64 value of an int64 enum, and the exact default in the comment", async () => {
    const { text } = await typesOf(
      "{ type: object, properties: { a: { type: integer, enum: [9223372036854775807, 1], default: 9223372036854775807 } } }",
    );
    assert.match(text, `enum: [${2 ** 63}, 1]`);
    assert.match(text, `@default 9223372036854775807`);
    assert.match(text, `a: ${2 ** 63} | 1;`);
  });

  test("keeps integers beyond 2^53 exactly in the deployed CRD", async () => {
    const values = ["9007199254740993", "9223372036854775807", "-9223372036854775808"];
    const field = (value: string) =>
      `{ type: integer, default: ${value}, enum: [${values.join(", ")}], example: ${value} }`;
    const fields = values.map((value, index) => `f${index}: ${field(value)}`).join(", ");
    await using folder = await createFolderWith({
      "workflow.yaml": workflowText("true"),
      "crds/a.yaml": crdText(`{ type: object, properties: { ${fields} } }`),
    });
    const deployed = async () => {
      const { diagnostics } = await generate({ project: folder.path });
      assert.equal(
        diagnostics.filter(({ severity }) => severity === "error"),
        [],
      );
      return readFile(join(folder.path, "deploy/generated/crds/things.example.com.yaml"), "utf8");
    };
    const text = await deployed();
    for (const value of values) {
      assert.match(text, `default: ${value}\n`);
      assert.match(text, `example: ${value}\n`);
      assert.match(text, `- ${value}\n`);
    }
    await writeFile(
      join(folder.path, "crds/a.yaml"),
      crdText(`{ type: object, properties: { f: ${field("9223372036854775806")} } }`),
    );
    assert.match(await deployed(), "default: 9223372036854775806\n");
  });

  test("limits the diagnostics shown per file to 50, errors first, and counts the others", () => {
    const problem = (line: number, severity: Diagnostic["severity"]): Diagnostic => ({
      ...{ severity, rule: "x", message: "m" },
      position: { file: "a.yaml", line, column: 1 },
    });
    const warnings = Array.from({ length: 60 }, (_, index) => problem(index + 1, "warning"));
    const errors = Array.from({ length: 45 }, (_, index) => problem(index + 100, "error"));
    const other = { ...problem(1, "error"), position: { file: "b.yaml", line: 1, column: 1 } };
    const { shown, omitted } = limitDiagnostics([...warnings, ...errors, other]);
    assert.equal(shown, [...warnings.slice(0, 5), ...errors, other]);
    assert.equal(omitted, [{ file: "a.yaml", errors: 0, warnings: 55 }]);
    assert.is(
      describeOmitted({ file: "a.yaml", errors: 1, warnings: 55 }).message,
      "a.yaml has 1 error and 55 warnings more",
    );
    assert.equal(limitDiagnostics(warnings.slice(0, 50)), { shown: warnings.slice(0, 50), omitted: [] });
  });

  test("prints less than 200 lines for a file with thousands of errors", async () => {
    const keys = Array.from({ length: runs(30_000) }, (_, index) => `a${index % 10}: {}`).join(", ");
    const fields = Array.from({ length: runs(5_000) }, (_, index) => `a${index}: { type: thing }`).join(", ");
    for (const text of [
      crdText(`{ type: object, properties: { ${keys} } }`),
      crdText(`{ type: object, properties: { ${fields} } }`),
      "- !!set a\n".repeat(runs(20_000)),
    ]) {
      await using folder = await createFolderWith({ "a.yaml": text });
      const { status, stderr } = await runCommand(folder.path, "types", "a.yaml", "--out", "out");
      assert.is(status, 1);
      assert.not.match(stderr, "bug in it");
      assert.ok(stderr.split("\n").length < 200, stderr.slice(0, 500));
      assert.match(stderr, /more-problems: a\.yaml has \d+ errors more/);
    }
  });
});
