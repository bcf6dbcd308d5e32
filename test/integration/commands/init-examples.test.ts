// `init --example`: every example is a project that compiles, with objects that an API server takes.
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EXAMPLES } from "#generator/init/examples.js";
import { DevCluster } from "#generator/dev/dev-cluster.js";
import { findPackages } from "#generator/dev/project-packages.js";
import { readProject } from "#generator/read/read-project.js";
import { fastCompiler } from "../../support/projects/compile.js";
import { runCommand } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { linkPackages } from "../../support/projects/link-packages.js";

const LONG = { timeoutMs: 180_000 };
const names = Object.keys(EXAMPLES);

suite("init --example", (test) => {
  test("offers every sample of the repository, listed in the help", async () => {
    assert.equal([...names].sort(), (await readdir(join(repositoryRoot, "fixtures/samples"))).sort());
    const { stdout } = await runCommand(repositoryRoot, "init", "--help");
    for (const [name, text] of Object.entries(EXAMPLES))
      assert.ok(stdout.includes(`  ${name.padEnd(14)}${text}\n`), name);
  });

  for (const name of names) {
    test.thorough(
      `creates ${name}, which compiles, is up to date, and has examples that apply`,
      async () => {
        await using folder = await createTemporaryFolder();
        const { status, stdout, stderr } = await runCommand(folder.path, "init", "project", "--example", name);
        assert.is(status, 0, stdout + stderr);
        assert.not.match(stdout, /^kept/m);
        const project = join(folder.path, "project");
        await linkPackages(project);
        const compiled = spawnSync(process.execPath, [fastCompiler.command, "--project", project], {
          encoding: "utf8",
        });
        assert.is(compiled.status, 0, compiled.stdout);
        assert.is((await runCommand(project, "generate", "--check", "--strict")).status, 0);
        assert.match(
          await readFile(join(project, "workflow.yaml"), "utf8"),
          /^# yaml-language-server: \$schema=node_modules\/gen-operator\/data\/workflow\.schema\.json$/m,
        );

        const cluster = await DevCluster.open({
          packages: await findPackages(project),
          kubeconfigFile: join(folder.path, "kubeconfig"),
        });
        try {
          const { crds } = await readProject(project);
          await cluster.applyCrds(crds);
          const { applied, problems } = await cluster.applyExamples(project, crds);
          assert.equal(problems, []);
          assert.ok(applied.length > 0);
          // What has not changed is not applied again.
          assert.equal(await cluster.applyCrds(crds), []);
          assert.equal(await cluster.applyExamples(project, crds), { applied: [], problems: [] });
        } finally {
          await cluster[Symbol.asyncDispose]();
        }
      },
      LONG,
    );
  }

  test.thorough("keeps existing files, lists them, and can be run again", async () => {
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "README.md"), "mine\n");
    const first = await runCommand(folder.path, "init", ".", "--example", "webpage", "--name", "pages");
    assert.is(first.status, 0, first.stderr);
    assert.match(first.stdout, /^kept {4}README\.md$/m);
    assert.is(await readFile(join(folder.path, "README.md"), "utf8"), "mine\n");
    const again = await runCommand(folder.path, "init", ".", "--example", "webpage");
    assert.is(again.status, 0, again.stderr);
    assert.not.match(again.stdout, /^(created|updated)/m);
  });

  test("rejects --crd and unknown examples with 2", async () => {
    await using folder = await createTemporaryFolder();
    const both = await runCommand(folder.path, "init", "a", "--example", "webpage", "--crd", "b.yaml");
    assert.is(both.status, 2);
    assert.match(both.stderr, /an example includes its CRDs/);
    const unknown = await runCommand(folder.path, "init", "a", "--example", "webpag");
    assert.is(unknown.status, 2);
    assert.match(unknown.stderr, /webpage/);
    assert.equal(await readdir(folder.path), []);
  });

  test.thorough("uses examples that the templates package contains without generated files", async () => {
    const target = await mkdtemp(join(repositoryRoot, "test/dist/pack-"));
    try {
      const packed = spawnSync("npm", ["pack", "--json", "--pack-destination", target], {
        cwd: join(repositoryRoot, "templates"),
        encoding: "utf8",
      });
      assert.is(packed.status, 0, packed.stderr);
      const [{ files }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf("["))) as [
        { files: { path: string }[] },
      ];
      const paths = files.map(({ path }) => path).filter((path) => path.startsWith("examples/"));
      for (const name of names)
        for (const file of ["workflow.yaml", "src/main.ts"])
          assert.ok(paths.includes(`examples/${name}/${file}`), `${name} ${file}`);
      assert.equal(
        paths.filter((path) => /\/(generated|dist|deploy)\//.test(path)),
        [],
      );
      assert.not.ok((await readdir(join(repositoryRoot, "templates"))).includes("examples"));
    } finally {
      await rm(target, { recursive: true });
    }
  });
});
