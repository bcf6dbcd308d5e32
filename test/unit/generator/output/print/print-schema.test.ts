import type { Schema } from "@gen-operator/runtime/codegen";
import fc from "../../../../support/fast-check.js";
import { format } from "prettier";
import { loadLibrary } from "#generator/model/typescript.js";
import { textOf } from "#generator/emit/print.js";
import { printSchema, printSchemaAlone } from "#generator/emit/resource/runtime-schema.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";

const compiler = loadLibrary("typescript");

/** Returns the constants of a schema as they are printed. */
const textsOf = (schema: Schema) => printSchema("rootSchema", schema).map((each) => textOf(each));

/** Evaluates printed constants and returns the exported one. */
function evaluate(sections: readonly string[]): unknown {
  const { outputText } = compiler.transpileModule(sections.join("\n").replaceAll(/^export /gm, ""), {
    compilerOptions: { target: compiler.ScriptTarget.ES2022, module: compiler.ModuleKind.ESNext },
  });
  return new Function(`"use strict"; ${outputText}; return rootSchema;`)() as unknown;
}

const names = fc.oneof(
  fc.constantFrom(
    "a",
    "class",
    "undefined",
    "globalThis",
    "__proto__",
    "constructor",
    "root",
    "3scale",
    "",
    "größe",
    "b",
  ),
  fc.string({ maxLength: 5 }),
);
const text = { type: "string", description: "x".repeat(60) } as Schema;
const schemasOf = (fields: fc.Arbitrary<string>): fc.Arbitrary<Schema> =>
  fc.letrec<{ schema: Schema }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom<Schema>(text, { type: "integer", minimum: 3, maximum: 300, multipleOf: 3, enum: [3, 30, 300] }),
      fc.record({
        type: fc.constant("object" as const),
        properties: fc.dictionary(fields, tie("schema"), { maxKeys: 4 }),
      }),
      fc.record({ type: fc.constant("array" as const), items: tie("schema") }),
      fc.record({ type: fc.constant("object" as const), additionalProperties: tie("schema") }),
    ),
  })).schema;

const plain = (schema: Schema) => JSON.parse(JSON.stringify(schema)) as Schema;

suite("printSchema", (test) => {
  test("evaluates to the schema for any field names", () => {
    fc.assert(
      fc.property(schemasOf(names), (given) => {
        const schema = plain(given);
        // A field may be called "constructor", by which a comparison of objects would tell them apart.
        assert.is(JSON.stringify(evaluate(textsOf(schema))), JSON.stringify(schema));
      }),
      { numRuns: runs(200) },
    );
  });

  test("prints in prettier's layout", async () => {
    await fc.assert(
      // Which other names need quotes, prettier decides by the parser.
      fc.asyncProperty(schemasOf(fc.constantFrom("a", "b", "class", "undefined", "x-y")), async (given) => {
        const printed = `${textsOf(plain(given)).join("\n\n")}\n`;
        assert.is(await format(printed, { parser: "babel-ts", printWidth: 120 }), printed);
      }),
      { numRuns: runs(50) },
    );
  });

  test("prints repeated parts once, named after their first field", () => {
    const port = { type: "object", properties: { name: text, port: { type: "integer", minimum: 1 } } } as const;
    const list = { type: "array", items: port } as const;
    const schema = plain({ type: "object", properties: { ports: list, more: list, class: text, other: text } });
    const printed = textsOf(schema);
    assert.equal(
      printed.map((each) => each.slice(0, each.indexOf(" ="))),
      ["const name: Schema", "const ports: Schema", "export const rootSchema: Schema"],
    );
    const last =
      'export const rootSchema: Schema = { type: "object", properties: { ports, more: ports, class: name, other: name } };';
    assert.is(printed[2], last);
  });

  test("references the definitions of a built-in kind by constants", () => {
    assert.is(
      textOf(printSchemaAlone("podSchema", { type: "object" }, ["PodSpec", "Volume"])),
      'export const podSchema: Schema = { type: "object", definitions: { PodSpec, Volume } };',
    );
  });
});
