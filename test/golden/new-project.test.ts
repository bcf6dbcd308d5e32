import { spawnSync } from "node:child_process";
import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { emitProject } from "#generator/output/emit-project.js";
import { initProject } from "#generator/output/init-project.js";
import { writeFiles } from "#generator/output/write-files.js";
import { repositoryRoot } from "../support/repository.js";
import { builtinResource } from "../support/resource-models.js";
import { dependentOf, listSamples, readSamplePrimary } from "../support/samples.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

suite("new project", (test) => {
  test(
    "builds, and its first test passes, without a line written by hand",
    async () => {
      await using folder = await createTemporaryFolder();
      const [sample] = listSamples();
      if (sample === undefined) throw new Error("there is no sample");
      const primary = readSamplePrimary(sample.folder);
      const configMap = builtinResource("", "v1", "ConfigMap");
      const crdFile = join(sample.folder, primary.crdFile ?? "");
      await initProject({ directory: folder.path, crdFiles: [crdFile], name: "pages" });
      const controller = { name: "webpage", primary, settings: {}, specFile: "workflow.yaml" };
      const dependents = [dependentOf("configMap", configMap)];
      const model = { resources: [configMap, primary], controllers: [{ ...controller, dependents }] };
      await writeFiles(folder.path, await emitProject(model), { check: false });
      await symlink(join(repositoryRoot, "node_modules"), join(folder.path, "node_modules"));
      const compiled = run(folder.path, [join(repositoryRoot, "node_modules/typescript/bin/tsc")]);
      assert.is(compiled.output, "");
      assert.equal(await readdir(join(folder.path, "dist/test")), ["webpage.test.js", "webpage.test.js.map"]);
      const { status, output } = run(folder.path, ["--test", "dist/test/webpage.test.js"]);
      assert.is(status, 0, output);
    },
    { timeoutMs: 60_000 },
  );
});

suite("sample project", (test) => {
  for (const { name, folder } of listSamples())
    test(
      `the own tests of ${name} pass`,
      () => {
        const { status, output } = run(folder, ["--test", `dist/test/${name}.test.js`]);
        assert.is(status, 0, output);
      },
      { timeoutMs: 60_000 },
    );
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
