import { spawnSync } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../../support/command-line.js";
import { checkGolden } from "../../support/projects/golden-file.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { linkPackages } from "../../support/projects/link-packages.js";

const sample = join(repositoryRoot, "fixtures/samples/webpage");
const crd = "crds/webpages.example.com.yaml";

const tsconfig = {
  compilerOptions: {
    ...{ module: "nodenext", target: "es2022", lib: ["es2023", "esnext.disposable"], types: ["node"] },
    ...{ strict: true, skipLibCheck: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
  },
  include: ["src"],
};

/** The sample in a repository of its own, with everything committed. */
async function createRepository() {
  const folder = await createTemporaryFolder();
  for (const part of ["crds", "src", "workflow.yaml"])
    await cp(join(sample, part), join(folder.path, part), { recursive: true });
  await writeFile(join(folder.path, "package.json"), '{ "name": "webpage", "type": "module" }\n');
  await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify(tsconfig));
  await mkdir(join(folder.path, "test"));
  await writeFile(join(folder.path, "test/webpage.test.ts"), "export {};\n");
  await writeFile(join(folder.path, ".gitignore"), "node_modules\n");
  await linkPackages(folder.path);
  git(folder.path, "init", "--quiet");
  git(folder.path, "add", "--all");
  git(folder.path, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "Start");
  return folder;
}

function git(folder: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync("git", ["-C", folder, ...args], { encoding: "utf8" });
  assert.is(status, 0, stderr);
  return stdout;
}

async function edit(file: string, ...replacements: [from: string, to: string][]): Promise<void> {
  let text = await readFile(file, "utf8");
  for (const [from, to] of replacements) {
    assert.is(text.includes(from), true, from);
    text = text.replace(from, to);
  }
  await writeFile(file, text);
}

suite("gen-operator diff", (test) => {
  test.thorough(
    "lists breaking fields, object effects, spec lines and stubs, exits with 1, and writes nothing",
    async () => {
      await using project = await createRepository();
      const unchanged = await runCommand(project.path, "diff");
      assert.equal([unchanged.status, unchanged.stdout], [0, "no differences in CRDs or specs\n"], unchanged.stderr);
      await edit(
        join(project.path, crd),
        ["required: [html]", "required: [page]"],
        ["                html:\n", "                page:\n"],
        ["default: 1", "default: 2"],
      );
      await edit(
        join(project.path, "workflow.yaml"),
        ["    service:\n", "    web:\n"],
        ["dependsOn: [service]", "dependsOn: [web]"],
        ["resource: v1/ConfigMap", "resource: v1/Secret"],
      );
      const before = git(project.path, "status", "--porcelain");
      const { status, stdout, stderr } = await runCommand(project.path, "diff");
      assert.is(stderr, "");
      checkGolden(join(repositoryRoot, "fixtures/commands/diff.txt"), stdout);
      assert.is(status, 1);
      assert.is(git(project.path, "status", "--porcelain"), before);

      const json = await runCommand(project.path, "diff", "--format", "json");
      const printed = JSON.parse(json.stdout) as { changes: { effect: string }[]; exitCode: number };
      assert.is(printed.exitCode, 1);
      const lines = stdout.split("\n").filter((line) => /^ {2}(breaking|compatible) /.test(line));
      assert.is(printed.changes.length, lines.length);
    },
    { timeoutMs: 120_000 },
  );

  test.thorough(
    "reports a moved dependent as compatible and exits with 0",
    async () => {
      await using project = await createRepository();
      await edit(
        join(project.path, "workflow.yaml"),
        ["    service:\n", "    web:\n"],
        ["dependsOn: [service]", "dependsOn: [web]"],
      );
      const spec = join(project.path, "workflow.yaml");
      await writeFile(spec, `${await readFile(spec, "utf8")}  moved: [{ from: service, to: web }]\n`);
      const { status, stdout, stderr } = await runCommand(project.path, "diff");
      const wanted = "  compatible service: moved to web; its objects are kept, and your code follows";
      assert.equal([stderr, stdout], ["", `controller webpage\n${wanted}\n0 breaking, 1 compatible\n`]);
      assert.is(status, 0);
    },
    { timeoutMs: 120_000 },
  );

  test.thorough(
    "compares with a folder, and exits with 0 if fields are only added",
    async () => {
      await using project = await createRepository();
      await using other = await createTemporaryFolder();
      await cp(project.path, join(other.path, "old"), { recursive: true, verbatimSymlinks: true });
      await edit(join(project.path, crd), [
        "                replicas:\n",
        "                footer: { type: string }\n                replicas:\n",
      ]);
      const { status, stdout, stderr } = await runCommand(project.path, "diff", "--against", join(other.path, "old"));
      assert.is(status, 0, stderr);
      assert.match(stdout, "webpages.example.com v1\n  compatible spec.footer: added\n");
      assert.match(stdout, "\n0 breaking, 1 compatible\n");
    },
    { timeoutMs: 120_000 },
  );

  test.thorough(
    "names a changed stub together with the immutable fields of its kind",
    async () => {
      await using project = await createRepository();
      for (const name of ["deployment", "config-map"]) {
        const stub = join(project.path, `src/webpage/dependents/${name}.ts`);
        await writeFile(stub, `${await readFile(stub, "utf8")}// Changed.\n`);
      }
      const { status, stdout } = await runCommand(project.path, "diff");
      const [, line, ...rest] = stdout.split("\n");
      assert.is(
        line,
        "  compatible deployment: src/webpage/dependents/deployment.ts differs; the API server rejects changes of spec.selector of an existing Deployment: change the name of the object, or set onImmutable: recreate",
      );
      assert.equal(rest, ["0 breaking, 1 compatible", ""]);
      assert.is(status, 0);
    },
    { timeoutMs: 120_000 },
  );

  test("exits with 2 for an unknown commit, a missing repository or an invalid project", async () => {
    await using project = await createRepository();
    const unknown = await runCommand(project.path, "diff", "--against", "v9");
    assert.is(unknown.status, 2);
    assert.match(unknown.stderr, /^gen-operator: cannot compare with "v9": [^\n]+\n$/);
    await edit(join(project.path, "workflow.yaml"), ["dependsOn: [service]", "dependsOn: [servce]"]);
    const wrong = await runCommand(project.path, "diff");
    assert.is(wrong.status, 2);
    assert.match(wrong.stderr, "nothing was compared: the project has errors");
    await rm(join(project.path, ".git"), { recursive: true });
    assert.is((await runCommand(project.path, "diff")).status, 2);
  });
});
