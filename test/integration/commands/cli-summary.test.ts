import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const crd = join(repositoryRoot, "fixtures/crds/notes.example.com.yaml");

/** A condition is compiled with the code that is generated. */
const WRONG_CONDITION = `
apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: note }
spec:
  primary: example.com/v1alpha1/Note
  dependents:
    configMap:
      resource: v1/ConfigMap
      reconcilePrecondition: { when: primary.spec.absent === 1 }
`;

/** The files of a project, but for the list and the memory that the generator keeps of its own. */
async function countFiles(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const isOwn = ({ name, parentPath }: (typeof entries)[number]) =>
    name === ".gen-operator.json" || parentPath.includes("node_modules");
  return entries.filter((entry) => entry.isFile() && !isOwn(entry)).length;
}

const linesOf = (stdout: string, change: string) =>
  stdout.split("\n").filter((line) => line.startsWith(`${change} `)).length;

/** What the summary counts, by its words. */
function summaryOf(stdout: string): Record<string, number> {
  const line = stdout.split("\n").find((each) => /^\d+ \w+(, \d+ \w+)*$/.test(each)) ?? "";
  return Object.fromEntries(
    [...line.matchAll(/(\d+) (\w+)/g)].map(([, count, change]): [string, number] => [String(change), Number(count)]),
  );
}

suite("summary line", (test) => {
  test("counts every file of init once: created, unchanged or kept", async () => {
    await using folder = await createTemporaryFolder();
    const first = await runCommand(folder.path, "init", "notes", "--crd", crd);
    const files = await countFiles(join(folder.path, "notes"));
    assert.equal(summaryOf(first.stdout), { created: files }, first.stdout);
    assert.is(linesOf(first.stdout, "created"), files);

    const second = await runCommand(folder.path, "init", "notes", "--crd", crd);
    const { unchanged = 0, kept = 0, ...others } = summaryOf(second.stdout);
    assert.equal(others, {}, second.stdout);
    assert.is(unchanged + kept, files);
    assert.is(linesOf(second.stdout, "kept"), kept);
  });

  test("counts a package.json that init extends as updated", async () => {
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "package.json"), "{}\n");
    const { stdout } = await runCommand(folder.path, "init", ".", "--crd", crd);
    assert.equal(summaryOf(stdout), { created: (await countFiles(folder.path)) - 1, updated: 1 }, stdout);
  });

  test("is the same for generate and generate --check if nothing changed", async () => {
    await using folder = await createTemporaryFolder();
    await runCommand(folder.path, "init", "notes", "--crd", crd);
    const project = join(folder.path, "notes");
    const again = await runCommand(project, "generate");
    const checked = await runCommand(project, "generate", "--check");
    assert.equal([again.status, checked.status], [0, 0]);
    assert.match(again.stdout, /^\d+ unchanged, \d+ kept\n$/);
    assert.is(checked.stdout, again.stdout);
  });

  test("reports that init wrote nothing if the spec is invalid", async () => {
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "workflow.yaml"), "kind: Workflow\n");
    const { status, stderr } = await runCommand(folder.path, "init", ".", "--crd", crd);
    assert.is(status, 1);
    assert.match(stderr, /\n3 errors; nothing was written\n$/);
    assert.equal(await readdir(folder.path), ["workflow.yaml"]);
  });

  test("reports that no code was generated if only an expression is invalid", async () => {
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "workflow.yaml"), WRONG_CONDITION);
    const { status, stderr } = await runCommand(folder.path, "init", ".", "--crd", crd);
    assert.is(status, 1);
    assert.match(stderr, /\n1 error; no code was generated\n$/);
    assert.ok((await readdir(folder.path)).includes("package.json"));
  });
});
