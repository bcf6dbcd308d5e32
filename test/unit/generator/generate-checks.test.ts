// What `generate` tells people besides what is wrong with a spec.
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate, type GenerateOptions } from "#generator/generate.js";
import { suggestCaches } from "#generator/suggest/suggest-caches.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const SPEC = `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: page }
spec:
  primary: example.com/v1/Page
  dependents:
    config: { resource: v1/ConfigMap }
`;

const crd = (kind: string) => `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: ${kind.toLowerCase()}s.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: ${kind}, listKind: ${kind}List, plural: ${kind.toLowerCase()}s, singular: ${kind.toLowerCase()} }
  versions:
    - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }
`;

async function createProject() {
  const folder = await createTemporaryFolder();
  await mkdir(join(folder.path, "crds"));
  await writeFile(join(folder.path, "workflow.yaml"), SPEC);
  for (const kind of ["Page", "Site"]) await writeFile(join(folder.path, `crds/${kind.toLowerCase()}.yaml`), crd(kind));
  return folder;
}

suite("generate", (test) => {
  test("reports each CRD it reads and each kind it generates as progress", async () => {
    await using project = await createProject();
    const steps: string[] = [];
    await generate({ project: project.path, onStep: (step) => steps.push(step) });
    const [first, ...others] = steps;
    assert.is(first, "reading the CRDs and the spec");
    // Files are parsed as they come.
    const read = others.splice(0, 2);
    assert.equal(read.map((step) => step.replace(/ \(.*/, "")).sort(), [
      "reading crds/page.yaml",
      "reading crds/site.yaml",
    ]);
    assert.equal(
      read.map((step) => /\(.*/.exec(step)?.[0]),
      ["(1 of 2)", "(2 of 2)"],
    );
    assert.equal(others, [
      "checking the spec",
      "generating the types of Page v1 (1 of 2)",
      "generating the types of Site v1 (2 of 2)",
      "generating the code of 1 controller",
      "checking your code and the conditions",
      "writing the files",
    ]);
  });

  test("reports each CRD and the code analysis as progress of suggestCaches", async () => {
    await using project = await createProject();
    const steps: string[] = [];
    await suggestCaches({ project: project.path, dryRun: true, onStep: (step) => steps.push(step) });
    assert.equal(
      steps.slice(0, -1).map((step) => step.replace(/ \S+\.yaml/, "")),
      ["reading (1 of 2)", "reading (2 of 2)"],
    );
    assert.is(steps.at(-1), "analyzing your code");
  });

  test("reports a missing project folder by name", async () => {
    const { diagnostics } = await generate({ project: "/nowhere/at all" });
    assert.equal(
      diagnostics.map(({ message }) => message),
      ['folder "/nowhere/at all" not found'],
    );
  });

  const title = "reports an unreadable folder with the reason";
  if (process.getuid?.() === 0) test.skip(title, "root may read anything");
  else
    test(title, async () => {
      await using project = await createProject();
      const crds = join(project.path, "crds");
      await chmod(crds, 0o000);
      // What cannot be read cannot be removed at the end.
      const { diagnostics } = await generate({ project: project.path }).finally(() => chmod(crds, 0o755));
      assert.equal(
        diagnostics.map(({ rule, message }) => `${rule}: ${message}`),
        ['unreadable-file: "crds" cannot be read: permission denied'],
      );
    });

  test("adds labels that code reads to inputs in the same run, and keeps them when a dependent is renamed", async () => {
    await using project = await createProject();
    const at = (path: string) => join(project.path, path);
    const run = (options: Omit<GenerateOptions, "project"> = {}) => generate({ project: project.path, ...options });
    const controller = () => readFile(at("src/generated/page/controller.ts"), "utf8");
    await run();
    assert.not.match(await controller(), "inputs");
    const desired = (text: string) =>
      writeFile(
        at("src/page/dependents/config.ts"),
        `import type { ConfigDesired } from "../../generated/page/types.js";\n` +
          `export const desired: ConfigDesired = ({ primary }) => ({ metadata: { name: ${text} } });\n`,
      );
    await desired("primary.metadata.labels?.tier");
    const checked = await run({ check: true });
    assert.equal(checked.report?.stale, ["src/generated/page/controller.ts"]);
    assert.is((await run()).notes, undefined);
    assert.match(await controller(), "inputs: [\"metadata.labels['tier']\"],");
    assert.equal((await run({ check: true })).report?.stale, []);

    const renamed = `${SPEC.replace("config:", "settings:")}  moved: [{ from: config, to: settings }]\n`;
    await writeFile(at("workflow.yaml"), renamed);
    await run();
    assert.match(await controller(), "inputs: [\"metadata.labels['tier']\"],");
    assert.equal((await run({ check: true })).report?.stale, []);
  });

  test("uses all labels and annotations as inputs if the primary is passed to other code, with a note", async () => {
    await using project = await createProject();
    await generate({ project: project.path });
    await writeFile(
      join(project.path, "src/page/dependents/config.ts"),
      `import { build } from "library";\nexport const desired = ({ primary }: never) => build(primary);\n`,
    );
    for (let index = 0; index < 2; index++) {
      const { diagnostics, notes = [] } = await generate({ project: project.path, strict: true });
      assert.equal(diagnostics, []);
      assert.match(
        notes.join(),
        /^controller "page" reconciles on changes .*: src\/page\/dependents\/config\.ts:2:5\d /,
      );
    }
    const text = await readFile(join(project.path, "src/generated/page/controller.ts"), "utf8");
    assert.match(text, 'inputs: ["metadata.annotations", "metadata.labels"],');
  });
});
