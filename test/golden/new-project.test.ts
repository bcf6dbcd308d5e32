import { spawnSync } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chosenCompilers, compilers, fastCompiler } from "../support/projects/compile.js";
import { createPagesProject } from "../support/projects/new-project.js";
import { listSamples } from "../support/projects/samples.js";
import { assert, suite } from "../support/suite.js";

interface ProjectManifest {
  readonly scripts: { readonly test: string };
}

suite("new project", (test) => {
  test(
    "builds and passes its first test without manual changes",
    async () => {
      await using folder = await createPagesProject();
      const compiled = run(folder.path, [fastCompiler.command]);
      assert.is(compiled.output, "");
      assert.equal(await readdir(join(folder.path, "dist/test")), ["webpage.test.js", "webpage.test.js.map"]);
      const { status, output } = run(folder.path, ["--test", "dist/test/webpage.test.js"]);
      assert.is(status, 0, output);
    },
    { timeoutMs: 60_000 },
  );

  test.thorough(
    "emits nothing on a type error, so that the running operator is kept",
    async () => {
      await using folder = await createPagesProject();
      await writeFile(join(folder.path, "src/webpage/dependents/config-map.ts"), "export const desired = 1;\n");
      for (const { command } of chosenCompilers) {
        assert.match(run(folder.path, [command, "--pretty", "false"]).output, / error TS\d+: /);
        assert.not.ok((await readdir(folder.path)).includes("dist"));
      }
    },
    { timeoutMs: 60_000 },
  );

  test.thorough(
    "npm test: removes compiled tests without a source, and keeps the rest of dist",
    async () => {
      await using folder = await createPagesProject();
      for (const kept of ["test", "dev"]) await mkdir(join(folder.path, "dist", kept), { recursive: true });
      await writeFile(join(folder.path, "dist/dev/kubeconfig"), "");
      const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
      const config = join(folder.path, "tsconfig.json");
      const text = await readFile(config, "utf8");
      await writeFile(config, text.replace('"sourceMap"', '"incremental": true, "sourceMap"'));
      // From now on an incremental compiler writes nothing for a source that does not change.
      assert.is(run(folder.path, [compilers[0]!.command]).output, "");
      await writeFile(join(folder.path, "dist/test/gone.test.js"), 'throw new Error("no source");\n');
      const { status, stdout, stderr } = spawnSync("npm", ["test"], { cwd: folder.path, env, encoding: "utf8" });
      assert.is(status, 0, stdout + stderr);
      const tests = (await readdir(join(folder.path, "dist/test"))).filter((file) => file.endsWith(".js"));
      assert.equal(tests, ["webpage.test.js"]);
      assert.equal(await readdir(join(folder.path, "dist/dev")), ["kubeconfig"]);
    },
    { timeoutMs: 60_000 },
  );

  test(
    "npm test: exits despite a leaked server, and times out endless tests",
    async () => {
      await using folder = await createPagesProject();
      const { scripts } = JSON.parse(await readFile(join(folder.path, "package.json"), "utf8")) as ProjectManifest;
      const [, command = ""] = / && (node --test .*)$/.exec(scripts.test) ?? [];
      await mkdir(join(folder.path, "dist/test"), { recursive: true });
      const imports =
        'import { test } from "node:test"; import { startApiServer, waitFor } from "@gen-operator/apiserver";\n';
      const forgotten = `test("forgotten", async () => {
        await startApiServer();
        await waitFor("the page", () => undefined, { timeoutMs: 10, describe: () => ({ phase: "Pending" }) });
      });\n`;
      await writeFile(join(folder.path, "dist/test/forgotten.test.js"), imports + forgotten);
      await writeFile(
        join(folder.path, "dist/test/endless.test.js"),
        `${imports}test("endless", () => new Promise((resolve) => setTimeout(resolve, 1e9)));\n`,
      );
      const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
      const begin = (text: string) =>
        spawnSync(text, { cwd: folder.path, env, encoding: "utf8", shell: true, timeout: 60_000 });
      assert.match(command, "--test-timeout=300000");
      const { status, signal, stdout } = begin(command.replace("--test-timeout=300000", "--test-timeout=6000"));
      assert.equal([status, signal], [1, null], stdout);
      assert.match(
        stdout,
        /the page: timed out after \d+ ms; the last value was undefined; actual state: \{ phase: 'Pending' \}/,
      );
      assert.match(stdout, "endless");
    },
    { timeoutMs: 90_000 },
  );

  test.thorough(
    "npm test: fails on stale generated code and names the command that updates it",
    async () => {
      await using folder = await createPagesProject();
      const workflow = join(folder.path, "workflow.yaml");
      await writeFile(
        workflow,
        (await readFile(workflow, "utf8")).replace("configMap:", "page: { resource: v1/Secret }\n    configMap:"),
      );
      const { status, stdout, stderr } = spawnSync("npm", ["test"], { cwd: folder.path, encoding: "utf8" });
      assert.is(status, 1, stdout);
      assert.match(stderr, /^stale src\/generated\/webpage\/workflow\.ts$/m);
      assert.match(stderr, /^generated code is not up to date: \d+ files; run: npx gen-operator generate$/m);
      assert.not.ok((await readdir(folder.path)).includes("dist"));
    },
    { timeoutMs: 60_000 },
  );
});

suite("sample projects", (test) => {
  for (const { name, folder } of listSamples()) {
    test.thorough(
      `passes the tests of ${name}`,
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
