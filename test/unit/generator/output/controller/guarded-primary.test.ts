import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { readProject } from "#generator/read/read-project.js";
import { acceptWarnings, buildModel } from "#generator/check/build-model.js";
import { checkConditions } from "#generator/code/check-types.js";
import { emitProject } from "#generator/emit/emit-project.js";
import type { OutputFile } from "#generator/emit/output-file.js";
import { chosenCompilers, writeProject } from "../../../../support/projects/compile.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder } from "../../../../support/temporary-folder.js";

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: shops.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Shop, plural: shops, singular: shop }
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [name, mode]
              properties:
                name: { type: string }
                mode: { type: string, enum: [small, large] }
                isOpen: { type: boolean, default: false }
                isBusy: { type: boolean }
                size: { type: integer }
                hosts: { type: array, items: { type: string } }
                nodes: { type: object, additionalProperties: { type: string } }
                comment: { type: string, nullable: true }
                backup:
                  type: object
                  properties:
                    schedule: { type: string }
                    keep: { type: integer, default: 3 }
                free: { x-kubernetes-preserve-unknown-fields: true }
            status: { type: object, properties: { phase: { type: string } } }
`;

/** A dependent of the workflow: its options, and what its `desired` knows of the primary besides its type. */
type Case = readonly [options: string, known: string | undefined];

const when = (expression: string, condition = "reconcilePrecondition") =>
  `${condition}: { when: ${JSON.stringify(expression)} }`;
const has = when("primary.spec.backup !== undefined");
const backup = "{ readonly spec: { readonly backup: {} } }";
const orphan = (options: string) => `resource: v1/ConfigMap, ${options}`;
const database = "external: { perPrimaryPoll: { every: 5s } }";

const cases: { readonly [name: string]: Case } = {
  undefinedOnly: [orphan(has), backup],
  active: [orphan(when("primary.spec.backup !== undefined", "activationCondition")), backup],
  nested: [
    orphan(when("primary.spec.backup?.schedule != null")),
    "{ readonly spec: { readonly backup: { readonly schedule: {} } } }",
  ],
  both: [
    orphan(when("primary.spec.size !== undefined && primary.spec.backup?.keep === 3")),
    "{ readonly spec: { readonly backup: { readonly keep: 3 }; readonly size: {} } }",
  ],
  objectAndField: [
    orphan(when("primary.spec.backup?.schedule === 'x' && primary.spec.backup !== undefined")),
    '{ readonly spec: { readonly backup: { readonly schedule: "x" } } }',
  ],
  oneOf: [orphan(when("primary.spec.mode === 'large'")), '{ readonly spec: { readonly mode: "large" } }'],
  truth: [orphan(when("primary.spec.isBusy ?? false")), "{ readonly spec: { readonly isBusy: true } }"],
  nullable: [orphan(when("primary.spec.comment !== undefined")), "{ readonly spec: { readonly comment: {} | null } }"],
  notNull: [
    orphan(when("primary.spec.comment !== undefined && primary.spec.comment !== null")),
    "{ readonly spec: { readonly comment: {} } }",
  ],
  item: [orphan(when("primary.spec.hosts?.includes('a') === true")), "{ readonly spec: { readonly hosts: {} } }"],
  entry: [orphan(when("primary.spec.nodes?.['a'] === 'b'")), "{ readonly spec: { readonly nodes: {} } }"],
  label: [
    orphan(when("primary.metadata.labels?.['tier'] === 'gold'")),
    "{ readonly metadata: { readonly labels: {} } }",
  ],
  ofStatus: [orphan(when("primary.status?.phase === 'Ready'")), '{ readonly status: { readonly phase: "Ready" } }'],
  untypedField: [orphan(when("primary.spec.free !== undefined")), "{ readonly spec: { readonly free: {} | null } }"],
  bulky: [orphan(`bulk: true, ${has}`), backup],
  once: [`resource: batch/v1/Job, mode: once, ${has}`, backup],
  held: [orphan(`heldForCleanup: true, ${has}`), backup],
  external: [`${database}, ${has}`, backup],
  // What another one waits for was let pass by its own conditions.
  after: [orphan("dependsOn: [undefinedOnly]"), backup],
  afterAfter: [
    orphan(`dependsOn: [after], ${when("primary.spec.size !== undefined")}`),
    "{ readonly spec: { readonly backup: {}; readonly size: {} } }",
  ],
  afterReadOnly: [orphan("dependsOn: [given]"), backup],
  given: [`resource: v1/Secret, ref: { name: "'given'" }, ${has}`, undefined],
  optionally: [orphan("dependsOn: [{ name: undefinedOnly, optional: true }]"), undefined],
  // Their desired() says where the object is, whatever the conditions say.
  ordered: [orphan(`deletion: ordered, ${has}`), undefined],
  untied: [orphan(`deletion: orphan, ${has}`), undefined],
  elsewhere: [orphan(`cluster: other, ${has}`), undefined],
  ownCreate: [orphan(`operations: { create: own }, ${has}`), undefined],
  ownUpdate: [orphan(`operations: { update: own }, ${has}`), backup],
  // The schema says as much, or the condition says nothing.
  required: [orphan(when("primary.spec.name !== undefined && primary.spec.name === 'a'")), undefined],
  defaulted: [orphan(when("primary.spec.isOpen === true")), undefined],
  negated: [orphan(when("!(primary.spec.backup === undefined)")), undefined],
  either: [orphan(when("primary.spec.backup !== undefined || primary.spec.size === 1")), undefined],
  ready: [orphan(when("primary.spec.backup !== undefined", "readyPostcondition")), undefined],
  byFunction: [orphan("reconcilePrecondition: { function: hasBackup }"), undefined],
  secondaries: [orphan(`dependsOn: [oneOf], ${when("secondary.oneOf.data !== undefined")}`), undefined],
};
// What it depends on is guarded, too.
const knownOf = (name: string) => (name === "secondaries" ? cases["oneOf"]![1] : cases[name]![1]);

const spec = `
apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: shop }
spec:
  primary: example.com/v1/Shop
  dependents:
${Object.entries(cases)
  .map(([name, [options]]) => {
    const waits = options.includes("dependsOn: [undefinedOnly]") || /dependsOn: \[(after|given|oneOf)\]/.test(options);
    const reason = "{ rule: conditional-dependency, reason: they go together }";
    return `    ${name}: { ${options}${waits ? `, accept: [${reason}]` : ""} }`;
  })
  .join("\n")}
`;

let emittedOnce: Promise<OutputFile[]> | undefined;
const emit = () => (emittedOnce ??= emitAnew());

async function emitAnew(): Promise<OutputFile[]> {
  await using folder = await createTemporaryFolder();
  for (const [path, text] of Object.entries({ "crds/shops.yaml": crd, "workflow.yaml": spec })) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  const input = await readProject(folder.path);
  const { model, diagnostics, locate } = await buildModel(input);
  const found = acceptWarnings([...input.diagnostics, ...diagnostics], input.workflows);
  assert.equal(found.filter(({ severity }) => severity === "error").map(formatDiagnostic), []);
  const emitted = await emitProject(model!);
  assert.equal((await checkConditions(model!, emitted, { code: [], locate })).map(formatDiagnostic), []);
  return emitted;
}

const pascal = (name: string) => `${name[0]!.toUpperCase()}${name.slice(1)}`;

suite("type of the primary in desired()", (declareTest) => {
  // Compilers take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 120_000 });

  test("includes the fields that always-evaluated conditions prove", async () => {
    const emitted = await emit();
    const textOf = (path: string) => emitted.find((file) => file.path === path)!.content.replace(/\s+/g, " ");
    const types = textOf("src/generated/shop/types.ts").replaceAll("; }", " }");
    const workflow = textOf("src/generated/shop/workflow.ts");
    for (const name of Object.keys(cases)) {
      const known = knownOf(name);
      const isExternal = cases[name]![0].includes("external:");
      const member = isExternal
        ? `interface ${pascal(name)}External {.*?readonly desired: `
        : `type ${pascal(name)}Desired = `;
      const [, desired = ""] = new RegExp(`${member}Desired< ?(.*?),? ?>;`).exec(types) ?? [];
      const [, guarantee] = /(?:, )Shop & (.*)$/.exec(desired) ?? [];
      assert.is(guarantee, known, `${name}: ${desired}`);
      const isGuarded = workflow.includes(`guarded(${name}Dependent.desired)`);
      assert.is(isGuarded, known !== undefined, name);
    }
  });

  test("compiles without assertions where a condition proves a field, and with an error elsewhere", async () => {
    await using folder = await createTemporaryFolder();
    const emitted = await emit();
    const head = (type: string) => `import type { ${type} } from "../../generated/shop/types.js";\n`;
    const fileOf = (name: string, body: string) => ({
      path: `src/shop/dependents/${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.ts`,
      content: `${head(`${pascal(name)}Desired`)}${body}`,
    });
    const data = (value: string) => `({ metadata: { name: primary.metadata.name }, data: { a: ${value} } });\n`;
    const own = [
      fileOf(
        "undefinedOnly",
        `export const desired: UndefinedOnlyDesired = ({ primary }) => ${data('primary.spec.backup.schedule ?? ""')}`,
      ),
      fileOf(
        "nested",
        `export const desired: NestedDesired = ({ primary }) => ${data("primary.spec.backup.schedule")}`,
      ),
      fileOf(
        "oneOf",
        `const texts = { large: "x" };\nexport const desired: OneOfDesired = ({ primary }) => ${data("texts[primary.spec.mode]")}`,
      ),
      fileOf("entry", `export const desired: EntryDesired = ({ primary }) => ${data('primary.spec.nodes["b"] ?? ""')}`),
      fileOf(
        "label",
        `export const desired: LabelDesired = ({ primary }) => ${data('primary.metadata.labels["tier"] ?? ""')}`,
      ),
      fileOf(
        "after",
        `export const desired: AfterDesired = ({ primary }) => ${data('primary.spec.backup.schedule ?? ""')}`,
      ),
      fileOf(
        "ordered",
        `// @ts-expect-error: it may be absent\nexport const desired: OrderedDesired = ({ primary }) => ${data('primary.spec.backup.schedule ?? ""')}`,
      ),
      fileOf(
        "negated",
        `// @ts-expect-error: it may be absent\nexport const desired: NegatedDesired = ({ primary }) => ${data('primary.spec.backup.schedule ?? ""')}`,
      ),
      fileOf(
        "item",
        // Nothing is said of a single item, nor of other primaries.
        `export const desired: ItemDesired = ({ primary, context }) => {\n  const other = context.primaries.byIndex("x", "y")[0];\n  // @ts-expect-error: it may be absent\n  void other?.spec.hosts.length;\n  // @ts-expect-error: it may be absent\n  const first: string = primary.spec.hosts[0];\n  return ${data("first")}};\n`,
      ),
    ];
    const paths = new Set(own.map(({ path }) => path));
    for (const path of paths)
      assert.ok(
        emitted.some((file) => file.path === path),
        path,
      );
    await writeProject(folder.path, [...emitted.filter(({ path }) => !paths.has(path)), ...own]);
    for (const { compile } of chosenCompilers) assert.is(compile(folder.path), "");
  });
});
