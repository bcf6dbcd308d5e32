import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatDiagnostic, hasErrors } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { buildModel } from "#generator/check/build-model.js";
import { emitResources } from "#generator/emit/emit-project.js";
import type { OutputFile } from "#generator/emit/output-file.js";
import { chosenCompilers, writeProject } from "../support/projects/compile.js";
import { crdJson, crdsWithKeywords, crdsWithStructures, SCHEMA_KEYWORDS } from "../support/kinds/hostile-crds.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { isThorough } from "../support/runs.js";

// Compilers take seconds, more so when other tests run beside them.
const slow = { timeoutMs: 240_000 };

/** What a careful project switches on beside what is strict. */
const CAREFUL = {
  isolatedDeclarations: true,
  declaration: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  exactOptionalPropertyTypes: true,
  noPropertyAccessFromIndexSignature: true,
};

/** An object with one field. */
const OBJECT: Schema = { type: "object", properties: { k: { type: "string" } } };

type Schema = { readonly [keyword: string]: unknown };

/** Returns the code of a CRD, or what is wrong with it. */
async function emit(text: string): Promise<{ readonly files: readonly OutputFile[]; readonly problems: string }> {
  const { crds, diagnostics } = readCrds({ file: "crd.json", text });
  const problems = diagnostics.map(formatDiagnostic).join("\n");
  if (hasErrors(diagnostics)) return { files: [], problems };
  const { model } = await buildModel({ crds, workflows: [], builtin: await readBuiltinKinds() });
  return { files: emitResources(model?.resources ?? []), problems };
}

/** Asserts that all of the CRDs that are accepted compile, as one program. */
async function compileAll(texts: readonly string[]): Promise<{ accepted: number; refused: string[] }> {
  await using folder = await createTemporaryFolder();
  const all: OutputFile[] = [];
  const refused: string[] = [];
  for (const [index, text] of texts.entries()) {
    const { files, problems } = await emit(text);
    if (files.length === 0) refused.push(problems);
    all.push(...files.map((file) => ({ ...file, path: `case-${index}/${file.path}` })));
  }
  await writeProject(folder.path, all, CAREFUL);
  for (const { compile } of chosenCompilers) assert.is(compile(folder.path), "");
  return { accepted: texts.length - refused.length, refused };
}

/** Names of fields that mean something in JavaScript, in TypeScript or in a comment. */
const FIELDS = [
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "isPrototypeOf", "__defineGetter__"],
  ...["prototype", "length", "name", "apply", "class", "default", "static", "readonly", "get", "set", "async", "new"],
  ...[
    "a b",
    "3x",
    "a-b",
    "a.b",
    "'",
    '"',
    "\\",
    "\n",
    "*/",
    "${x}",
    "`",
    "#x",
    "x?",
    "[key: string]",
    "é",
    "日本",
    "😀",
  ],
];

/** Kinds that are called like something of the language, of the browser, of our runtime, or like a type made for another kind. */
const KINDS = [
  ...["My-Kind", "My-2", "my-Kind-Input"],
  ...["Foo", "FooInput", "FooSpec", "FooStatus", "FooList", "FooReconciler", "FooDependents"],
  ...[
    "Promise",
    "ReadonlyMap",
    "Partial",
    "Record",
    "Array",
    "ReadonlyArray",
    "Map",
    "Set",
    "Object",
    "String",
    "Number",
  ],
  ...[
    "Boolean",
    "Function",
    "Error",
    "Date",
    "Symbol",
    "Omit",
    "Pick",
    "Exclude",
    "Readonly",
    "NonNullable",
    "AbortSignal",
  ],
  ...[
    "Resource",
    "Controller",
    "Event",
    "Node",
    "ObjectMeta",
    "Condition",
    "JsonValue",
    "Schema",
    "Kept",
    "Reconciler",
  ],
  ...[
    "any",
    "never",
    "unknown",
    "undefined",
    "BigInt",
    "NaN",
    "Infinity",
    "class",
    "default",
    "await",
    "type",
    "Desired",
  ],
];

const text = { type: "string" };
const nested = (depth: number, wrap: (inner: Schema) => Schema, inner: Schema = text): Schema =>
  depth === 0 ? inner : nested(depth - 1, wrap, wrap(inner));
const below = (schema: Schema): Schema => ({ type: "object", properties: { spec: schema } });

/** A schema with something of everything. */
const FULL: Schema = {
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      required: ["count"],
      properties: {
        count: { type: "integer", default: 3 },
        items: { type: "array", items: { type: "object", properties: { a: text } } },
        labels: { type: "object", additionalProperties: text },
        any: { "x-kubernetes-preserve-unknown-fields": true },
        template: {
          type: "object",
          "x-kubernetes-embedded-resource": true,
          "x-kubernetes-preserve-unknown-fields": true,
        },
      },
    },
    status: { type: "object", properties: { ready: { type: "boolean" } } },
  },
};

/** A workflow with every kind of event source and dependent. */
function workflowText(kind: string): string {
  return `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: thing }
spec:
  primary: example.com/v1/${kind}
  dependents:
    settings: { resource: v1/ConfigMap, readyPostcondition: { function: isReady } }
    child: { resource: example.com/v1/${kind}, dependsOn: [settings], deletion: ordered }
    account: { external: { poll: { every: 1m } } }
    seats: { external: { perPrimaryPoll: { every: 1m } }, bulk: true }
    tickets: { external: { inbound: { fetch: true } } }
  eventSources:
    others: { resource: example.com/v1/${kind}, mapping: { function: mapOthers }, cache: { paths: [spec.count] } }
    prices: { poll: { every: 30s } }
    hooks: { inbound: {} }
`;
}

suite("hostile CRDs", (test) => {
  test(
    "are either rejected at the position of an invalid keyword or generate code that compiles",
    async () => {
      const all = [...crdsWithKeywords(), ...crdsWithStructures()].map(({ text: json }) => json);
      const texts = all.filter((_, index) => isThorough || index % 8 === 0);
      const { accepted, refused } = await compileAll(texts);
      const share = texts.length / all.length;
      assert.ok(
        accepted > 400 * share && refused.length > 1000 * share,
        `${accepted} accepted, ${refused.length} refused`,
      );
      for (const problems of refused) assert.match(problems, /^crd\.json:1:\d+: error crd-\w+: /);
    },
    slow,
  );

  test("may set keywords to null, which is the same as omitting them", async () => {
    const plain = await emit(crdJson(below(OBJECT)));
    const keywords = Object.fromEntries(
      SCHEMA_KEYWORDS.filter((name) => name !== "default" && name !== "example").map((name) => [name, null]),
    );
    const { files, problems } = await emit(crdJson(below({ ...keywords, ...OBJECT })));
    assert.is(problems, "");
    assert.equal(files, plain.files);
  });

  test.thorough(
    "generate code that compiles for any field name and schema depth",
    async () => {
      const of = (field: Schema, required: readonly string[] = []): Schema => ({
        type: "object",
        properties: Object.fromEntries(FIELDS.map((name) => [name, field])),
        required,
      });
      const inner = { type: "object", properties: { a: text }, required: ["a"] };
      const defaulted = { type: "string", default: "x" };
      const schemas = [
        ...[text, inner, defaulted].flatMap((field) => [of(field), of(field, FIELDS)]),
        ...[text, inner].flatMap((field) => [below(of(field)), below(of(field, FIELDS))]),
        ...[23, 24, 25, 48, 60, 90, 98].map((depth) => nested(depth, below)),
        ...[48, 90].map((depth) => below(nested(depth, (items) => ({ type: "array", items })))),
        ...[48, 90].map((depth) =>
          below(nested(depth, (values) => ({ type: "object", additionalProperties: values }))),
        ),
      ];
      const { refused } = await compileAll(schemas.map((schema) => crdJson(schema)));
      assert.equal(refused, []);
    },
    slow,
  );

  test.thorough(
    "generate code that compiles for any names of kinds, side by side",
    async () => {
      const list = `{"apiVersion":"v1","kind":"List","items":[${KINDS.map((kind) => crdJson(FULL, { kind })).join(",")}]}`;
      assert.equal((await compileAll([list])).refused, []);
    },
    slow,
  );

  test.thorough(
    "generate an operator that compiles for any name of a kind",
    async () => {
      await using folder = await createTemporaryFolder();
      await writeProject(folder.path, [], { ...CAREFUL, isolatedDeclarations: false });
      for (const kind of KINDS) {
        const project = join(folder.path, kind);
        const files = { "crds/crd.json": crdJson(FULL, { kind }), "workflow.yaml": workflowText(kind) };
        for (const [path, content] of Object.entries(files)) {
          await mkdir(dirname(join(project, path)), { recursive: true });
          await writeFile(join(project, path), content);
        }
        const { diagnostics } = await generate({ project });
        assert.equal(diagnostics.map(formatDiagnostic), [], kind);
      }
      for (const { compile } of chosenCompilers) assert.is(compile(folder.path), "");
    },
    slow,
  );
});
