import { writeFileSync } from "node:fs";
import { lstat, readFile, readlink, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { addController, addToSpec } from "#generator/add/add-to-spec.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const SPEC = `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: page }
spec:
  primary: v1/Service
  dependents:
    config: { resource: v1/ConfigMap }
`;
const ADDED = SPEC + "    secret: { resource: v1/Service }\n";

async function createProject(text = SPEC) {
  const folder = await createTemporaryFolder();
  const spec = join(folder.path, "workflow.yaml");
  await writeFile(spec, text);
  const add = (onStep?: () => void) =>
    addToSpec({
      ...{ project: folder.path, section: "dependents", name: "secret", value: { resource: "v1/Service" } },
      ...(onStep === undefined ? {} : { onStep }),
    });
  return { path: folder.path, spec, add, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

suite("gen-operator add", (declareTest) => {
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 120_000 });

  test("does not overwrite concurrent edits, and fails", async () => {
    await using project = await createProject();
    const other = SPEC.replace("config:", "# mine\n    config:");
    const edit = () => writeFileSync(project.spec, other);
    await assert.rejects(project.add(edit), "refused to change workflow.yaml: it was changed in the meantime");
    assert.is(await readFile(project.spec, "utf8"), other);

    const controller = join(project.path, "audit.workflow.yaml");
    const create = () => writeFileSync(controller, "mine");
    const adding = addController({ project: project.path, name: "audit", primary: "v1/Service", onStep: create });
    await assert.rejects(adding, "refused to change audit.workflow.yaml");
    assert.is(await readFile(controller, "utf8"), "mine");
  });

  test("keeps a symbolic link and a byte order mark", async () => {
    await using project = await createProject(`\ufeff${SPEC}`);
    const target = join(project.path, "page.yaml");
    await rename(project.spec, target);
    await symlink("page.yaml", project.spec);
    assert.equal((await project.add()).diagnostics, []);
    assert.is((await lstat(project.spec)).isSymbolicLink(), true);
    assert.is(await readlink(project.spec), "page.yaml");
    assert.is(await readFile(target, "utf8"), `\ufeff${ADDED}`);
  });
});
