import { format } from "prettier";
import type { RawSchema } from "#generator/model/project-model.js";
import { emitResources } from "#generator/emit/emit-project.js";
import fc from "../../../support/fast-check.js";
import { loadLibrary } from "#generator/model/typescript.js";
import { thingOf } from "../../../support/runtime/resource-models.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const compiler = loadLibrary("typescript");

// Text of a CRD may come from anywhere: none of it may become code.
const hostile = fc.oneof(
  fc.string({
    unit: fc.constantFrom("a", '"', "'", "`", "\\", "*/", "/*", "\n", "\u2028", "${", "}", ";", "//", "@", "-", "\0"),
  }),
  fc.constantFrom(
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "*/ evil(); /*",
    '"; evil(); "',
    "${evil()}",
    "prototype",
    "then",
  ),
);

const field: fc.Arbitrary<RawSchema> = fc.oneof(
  fc.record({ type: fc.constant("string"), description: hostile, pattern: hostile, default: hostile }),
  fc.record({ type: fc.constant("string"), enum: fc.array(hostile, { minLength: 1, maxLength: 4 }) }),
  fc.record({
    type: fc.constant("object"),
    additionalProperties: fc.constant({ type: "integer" }),
    description: hostile,
  }),
);

suite("emitResources", (test) => {
  test(
    "emits the same statements for any text in the schema",
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.dictionary(hostile, field, { maxKeys: 5, noNullPrototype: true }), async (properties) => {
          const spec = { type: "object", properties: { first: { type: "string" }, ...properties } };
          const files = await emitResources([thingOf(spec, { deprecationWarning: "*/ evil()" })]);
          for (const { path, content } of files) {
            const { diagnostics } = compiler.transpileModule(content, { reportDiagnostics: true, fileName: path });
            assert.equal(
              diagnostics?.map(({ messageText }) => messageText),
              [],
              content,
            );
          }
          const [classFile, schemaFile] = ["thing.ts", "thing.schema.ts"].map((name) => {
            const content = files.find(({ path }) => path.endsWith(`/${name}`))?.content ?? "";
            return compiler
              .createSourceFile(name, content, compiler.ScriptTarget.ESNext)
              .statements.map(({ kind }) => kind);
          });
          const { ImportDeclaration, InterfaceDeclaration, ClassDeclaration, VariableStatement } = compiler.SyntaxKind;
          assert.equal(classFile, [
            ImportDeclaration,
            ImportDeclaration,
            ImportDeclaration,
            InterfaceDeclaration,
            InterfaceDeclaration,
            // What has defaults has an interface for writers as well.
            ...(Object.values(properties).some((each) => "default" in each) ? [InterfaceDeclaration] : []),
            ClassDeclaration,
          ]);
          assert.equal([...new Set(schemaFile)], [ImportDeclaration, VariableStatement]);
        }),
        { numRuns: runs(60) },
      );
    },
    { timeoutMs: 60_000 },
  );

  test("emits the paths of the scale subresource in prettier's layout", async () => {
    for (const name of ["replicas", "aFieldWithANameThatIsLongEnoughToNeedLinesOfItsOwn"]) {
      const scale = {
        specReplicasPath: `.spec.${name}`,
        statusReplicasPath: `.status.${name}`,
        labelSelectorPath: ".status.selector",
      };
      const files = await emitResources([thingOf({ type: "object" }, { scale })]);
      const content = files.find(({ path }) => path.endsWith("/thing.ts"))?.content ?? "";
      assert.match(content, /^    scale: \{\s/m);
      for (const path of Object.values(scale)) assert.ok(content.includes(JSON.stringify(path)));
      assert.is(await format(content, { parser: "typescript", printWidth: 120 }), content);
    }
  });

  test("rejects two files whose names differ only in case", () => {
    const kinds = [thingOf({}, { kind: "HTTPRoute" }), thingOf({}, { kind: "HttpRoute" })];
    assert.throws(
      () => emitResources(kinds),
      /would be written to src\/generated\/resources\/example\.com\/v1\/http-route/,
    );
  });
});
