import { spawnSync } from "node:child_process";
import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "#generator/generate.js";
import { initProject } from "#generator/output/init-project.js";
import { compilers } from "../support/compile.js";
import { repositoryRoot } from "../support/repository.js";
import { isThorough, ONLY_THOROUGH } from "../support/runs.js";
import { listSamples } from "../support/samples.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

suite("new project", (test) => {
  test(
    "builds, and its first test passes, without a line written by hand",
    async () => {
      await using folder = await createTemporaryFolder();
      const crdFiles = [join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml")];
      await initProject({ directory: folder.path, crdFiles, name: "pages" });
      const { diagnostics } = await generate({ project: folder.path });
      assert.equal(diagnostics, []);
      await symlink(join(repositoryRoot, "node_modules"), join(folder.path, "node_modules"));
      const compiled = run(folder.path, [compilers.at(-1)?.command ?? ""]);
      assert.is(compiled.output, "");
      assert.equal(await readdir(join(folder.path, "dist/test")), ["webpage.test.js", "webpage.test.js.map"]);
      const { status, output } = run(folder.path, ["--test", "dist/test/webpage.test.js"]);
      assert.is(status, 0, output);
    },
    { timeoutMs: 60_000 },
  );
});

suite("sample project", (test) => {
  for (const { name, folder } of listSamples()) {
    const title = `the own tests of ${name} pass`;
    if (name !== "webpage" && !isThorough) {
      test.skip(title, ONLY_THOROUGH);
      continue;
    }
    test(
      title,
      async () => {
        const tests = (await readdir(join(folder, "dist/test"))).filter((file) => file.endsWith(".test.js"));
        const { status, output } = run(folder, ["--test", ...tests.map((file) => `dist/test/${file}`)]);
        assert.is(status, 0, output);
      },
      { timeoutMs: 60_000 },
    );
  }
});

function run(folder: string, args: readonly string[]): { status: number | null; output: string } {
  // A test runner inside a test runner would report to the outer one.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    env,
    encoding: "utf8",
    timeout: 50_000,
  });
  return { status, output: stdout + stderr };
}
