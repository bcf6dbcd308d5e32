import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { suggestCaches } from "#generator/suggest/suggest-caches.js";
import { runCommand } from "../../../support/command-line.js";
import { assert, suite } from "../../../support/suite.js";
import { createFolderWith, crdText, PLAIN_SCHEMA, workflowText } from "./project-text.js";

/** Generates a project with one condition or one schema, and returns what is said of it. */
async function diagnose({ when = "true === true", schema = PLAIN_SCHEMA }): Promise<string> {
  await using folder = await createFolderWith({ "workflow.yaml": workflowText(when), "crds/a.yaml": crdText(schema) });
  const { diagnostics } = await generate({ project: folder.path });
  return diagnostics.map(formatDiagnostic).join("\n");
}

/** Conditions, and what is said of each at its place. */
const CONDITIONS: readonly (readonly [when: string, message: RegExp])[] = [
  ["primary.spec?.a ?? false || true", /yaml:9:\d+: error .*'\?\?' and '\|\|' operations cannot be mixed/],
  ["/(/.test('a')", /yaml:9:\d+: error .*'\)' expected/],
  ["/a/zz.test('a')", /yaml:9:\d+: error .*Unknown regular expression flag/],
  ["#a in primary", /yaml:9:\d+: error .*Private identifiers are not allowed/],
  ["1n === 1", /yaml:9:\d+: error .*no overlap/],
];

/** What nests the deeper the longer it is. */
const REPEATED: { readonly [name: string]: (count: number) => string } = {
  "&&": (count) => Array(count).fill("primary.spec?.a").join(" && "),
  parentheses: (count) => `${"(".repeat(count)}1${")".repeat(count)}`,
  "!": (count) => `${"!".repeat(count)}1`,
  "?:": (count) => `${"1 ? 1 : ".repeat(count)}0`,
  lists: (count) => `${"[".repeat(count)}${"]".repeat(count)}`,
  fields: (count) => `primary${".a".repeat(count)}`,
  functions: (count) => `${"() => ".repeat(count)}1`,
  templates: (count) => `${"`${".repeat(count)}1${"}`".repeat(count)}`,
  objects: (count) => `${"{ a: ".repeat(count)}1${" }".repeat(count)}`,
  calls: (count) => `${"String(".repeat(count)}1${")".repeat(count)}`,
  "type arguments": (count) => "a<".repeat(count),
  assertions: (count) => `1${" as unknown".repeat(count)}`,
};

/** Schemas, and what is said of each. */
const SCHEMAS: readonly (readonly [schema: string, message: RegExp])[] = [
  ["{ type: object, <<: 5 }", /a\.yaml:14:46: error yaml-merge: "<<" can merge mappings only/],
  ["{ type: object, <<: [5] }", /error yaml-merge/],
  ["{ type: object, <<: null }", /error yaml-merge/],
  ["{ type: &x object, <<: *x }", /error yaml-merge/],
  [`${"{ type: object, properties: { a: ".repeat(300)}{ type: string }${" } }".repeat(300)}`, /nested too deeply/],
  [`${"{ type: object, properties: { a: ".repeat(3000)}{ type: string }${" } }".repeat(3000)}`, /nested too deeply/],
  ["[".repeat(20_000), /a\.yaml:14:\d+: error yaml-syntax: the document is nested too deeply/],
  ["- ".repeat(20_000), /error yaml-syntax: the document is nested too deeply/],
  [`"${"[".repeat(20_000)}"`, /error crd-schema: schema\.openAPIV3Schema is required in version "v1"/],
];

suite("edge cases of specs and CRDs", (test) => {
  for (const [when, message] of CONDITIONS)
    test(`rejects the condition ${when} with its position`, async () => {
      assert.match(await diagnose({ when }), message);
    });

  for (const [index, [name, repeat]] of Object.entries(REPEATED).entries())
    (index === 0 ? test : test.thorough)(
      `rejects a condition with 5000 repeated ${name}, but not with 60`,
      async () => {
        assert.match(
          await diagnose({ when: repeat(5000) }),
          /yaml:9:\d+: error when-syntax: an expression cannot have more than 500 tokens/,
        );
        assert.not.match(await diagnose({ when: repeat(60) }), /more than 500 tokens/);
      },
    );

  for (const [schema, message] of SCHEMAS)
    test(`rejects the schema ${schema.slice(0, 40)}`, async () => {
      assert.match(await diagnose({ schema }), message);
    });

  test("warns about code that is nested too deeply, and still generates", async () => {
    const spec = "  eventSources: { pods: { resource: v1/Pod, mapping: { label: { name: a/b } } } }\n";
    const sums = Array(6000).fill("secondary.pods[0]?.status?.phase").join(" +\n");
    await using folder = await createFolderWith({
      "workflow.yaml": workflowText("true === true") + spec,
      "crds/a.yaml": crdText(PLAIN_SCHEMA),
      "src/thing/reconciler.ts": `export const reconciler = { reconcile: ({ secondary }) => ${sums} };\n`,
      "src/list.ts": `export const list = ${"[".repeat(3000)}${"]".repeat(3000)};\n`,
    });
    const { diagnostics, report } = await generate({ project: folder.path });
    assert.ok(diagnostics.some(({ rule, severity }) => rule === "deep-code" && severity === "warning"));
    assert.ok(report !== undefined);
    const suggested = await suggestCaches({ project: folder.path });
    assert.equal(
      suggested.diagnostics.map(({ rule, severity }) => `${severity} ${rule}`),
      ["error deep-code"],
    );
    assert.equal(suggested.updated, []);
  });

  const callsOf = (count: number) => `${"call(".repeat(count)}${")".repeat(count)}`;
  const alternativesOf = (count: number) => Array(count).fill("call()").join(" ||\n");
  for (const [what, statement, found] of [
    ["200 calls", callsOf(200), []],
    ["50000 calls", callsOf(50_000), ["warning deep-code"]],
    ["500 alternatives", alternativesOf(500), []],
    ["100000 alternatives", alternativesOf(100_000), ["warning deep-code"]],
  ] as const)
    test(`generates with a statement of ${what}, and ${found.length === 0 ? "no" : "the"} warning about deep code`, async () => {
      await using folder = await createFolderWith({
        "workflow.yaml": workflowText("true === true"),
        "crds/a.yaml": crdText(PLAIN_SCHEMA),
        "src/thing/reconciler.ts": `const call = (given?: unknown) => given;\nexport const reconciler = { reconcile: () => {\n${statement};\n} };\n`,
      });
      const { diagnostics, report } = await generate({ project: folder.path });
      const others = diagnostics.filter(({ rule }) => rule !== "constant-condition");
      assert.equal([...new Set(others.map(({ rule, severity }) => `${severity} ${rule}`))], found);
      assert.ok(report !== undefined);
    });

  test("initializes a project from a List of CRDs and from a CRD with 300 aliases", async () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n  -\n${crdText(PLAIN_SCHEMA).replace(/^/gm, "    ")}`;
    const properties = Array.from({ length: 300 }, (_, index) => `b${index}: *a`).join(", ");
    const aliases = crdText(`{ type: object, properties: { a: &a { type: string }, ${properties} } }`);
    await using folder = await createFolderWith({ "list.yaml": list, "aliases.yaml": aliases });
    for (const file of ["list.yaml", "aliases.yaml"]) {
      const { status, stderr } = await runCommand(folder.path, "init", `of-${file}`, "--crd", file);
      assert.is(status, 0, stderr);
    }
  });

  test("initializes a project with separate files for CRD files of the same name", async () => {
    const files = { "x/crd.yaml": crdText(PLAIN_SCHEMA), "y/crd.yaml": crdText(PLAIN_SCHEMA, "Other") };
    await using folder = await createFolderWith(files);
    const { status, stderr } = await runCommand(folder.path, "init", "op", "--crd", ...Object.keys(files));
    assert.is(status, 0, stderr);
    assert.equal((await readdir(join(folder.path, "op/crds"))).sort(), ["crd-2.yaml", "crd.yaml"]);
  });

  test("rejects an invalid npm package name with exit code 2 before writing anything", async () => {
    await using folder = await createFolderWith({ "a.yaml": crdText(PLAIN_SCHEMA) });
    for (const name of ['a"b\\', "A", "a b", "../a", ".a", "@/a", "a\nb", "x".repeat(215)]) {
      const { status, stderr } = await runCommand(folder.path, "init", "op", "--crd", "a.yaml", "--name", name);
      assert.is(status, 2);
      assert.match(stderr, "invalid package name");
    }
    assert.equal(await readdir(folder.path), ["a.yaml"]);
  });

  test("rejects a package.json that is not JSON, with its position, in generate, dev, and doctor", async () => {
    const hint = "  use double quotes for names and strings, and a comma between entries, but not after the last\n";
    const cases: [text: string, expected: string][] = [
      ['{ "name":\n', `package.json:1:1: error yaml-syntax: invalid JSON: "{" is not closed\n${hint}`],
      [
        '{ "name": "a",\n}\n',
        "package.json:2:1: error yaml-syntax: invalid JSON: expected double-quoted property name\n" + hint,
      ],
      ["", `package.json:1:1: error yaml-syntax: invalid JSON: unexpected end of JSON input\n${hint}`],
    ];
    const spec =
      "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: page }\nspec: { primary: v1/Service }\n";
    await using marked = await createFolderWith({ "workflow.yaml": spec, "package.json": '\ufeff{ "name": "a" }\n' });
    await using folderInstead = await createFolderWith({ "workflow.yaml": spec, "package.json/a": "" });
    const { status: refused, stderr: reason } = await runCommand(folderInstead.path, "generate");
    assert.equal(
      [refused, reason],
      [1, 'error unreadable-file: "package.json" is not a file\n1 error; nothing was written\n'],
    );
    assert.is((await runCommand(marked.path, "generate")).status, 0, "npm accepts a mark of the byte order");
    for (const [text, expected] of cases) {
      await using folder = await createFolderWith({ "workflow.yaml": spec, "package.json": text });
      for (const command of ["generate", "dev"]) {
        const { status, stderr } = await runCommand(folder.path, command);
        assert.is(status, 1);
        assert.is(
          stderr,
          command === "dev" ? `gen-operator: ${expected}` : `${expected}1 error; nothing was written\n`,
        );
      }
      const { stdout } = await runCommand(folder.path, "doctor");
      assert.match(stdout, /^failed +package\.json: package\.json:\d+:\d+: invalid JSON: .*\n/m);
    }
  });

  test("rejects a package.json that is not a JSON object in init", async () => {
    for (const text of ["{", "[]", "null", "7"]) {
      await using folder = await createFolderWith({ "a.yaml": crdText(PLAIN_SCHEMA), "op/package.json": text });
      const { status, stderr } = await runCommand(folder.path, "init", "op", "--crd", "a.yaml");
      assert.is(status, 1);
      assert.match(stderr, "refused to change package.json: it is not a JSON object");
    }
  });
});
