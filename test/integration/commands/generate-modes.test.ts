// `generate --dry-run` and `generate --watch`.
import { spawnSync } from "node:child_process";
import { cp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand, runProgram } from "../../support/command-line.js";
import { createPagesProject } from "../../support/projects/new-project.js";
import { startProgram } from "../../support/machine/started-program.js";
import { assert, suite } from "../../support/suite.js";

const LONG = { timeoutMs: 90_000 };

/** Returns the texts of all files of a project but its packages. */
async function textsIn(folder: string): Promise<{ [path: string]: string }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !path.startsWith("node_modules") && !path.endsWith(".gen-operator.json"))
    .sort();
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, await readFile(join(folder, path), "utf8")] as const)),
  );
}

async function edit(folder: string, path: string, from: string, to: string): Promise<void> {
  const text = await readFile(join(folder, path), "utf8");
  assert.ok(text.includes(from), `${path} has no ${from}`);
  await writeFile(join(folder, path), text.replace(from, to));
}

suite("generate --dry-run", (test) => {
  test(
    "writes nothing, and prints a diff that applies to what generate writes",
    async () => {
      await using project = await createPagesProject();
      await edit(
        project.path,
        "workflow.yaml",
        "  dependents:\n",
        "  dependents:\n    service: { resource: v1/Service }\n",
      );
      const before = await textsIn(project.path);
      const { status, stdout, stderr } = runProgram(project.path, "generate", "--dry-run");
      assert.is(status, 0, stderr);
      assert.match(stderr, /^would be: 1 created, \d+ updated, \d+ unchanged$/m);
      assert.match(stdout, /^--- \/dev\/null\n\+\+\+ b\/src\/webpage\/dependents\/service\.ts$/m);
      assert.equal(await textsIn(project.path), before);

      await cp(project.path, `${project.path}-applied`, {
        recursive: true,
        filter: (path) => !path.includes("node_modules"),
      });
      try {
        const applied = spawnSync("git", ["apply", "-"], {
          cwd: `${project.path}-applied`,
          input: stdout,
          encoding: "utf8",
        });
        assert.is(applied.status, 0, applied.stderr);
        assert.is((await runCommand(project.path, "generate")).status, 0);
        assert.equal(await textsIn(`${project.path}-applied`), await textsIn(project.path));
      } finally {
        await rm(`${project.path}-applied`, { recursive: true });
      }
      const again = await runCommand(project.path, "generate", "--dry-run");
      assert.equal([again.status, again.stdout, again.stderr], [0, "", "nothing would change\n"]);
    },
    LONG,
  );

  test.thorough("exits with 1 where generate fails, and with 2 together with --check or --watch", async () => {
    await using project = await createPagesProject();
    await edit(project.path, "workflow.yaml", "dependents:", "dependants:");
    const { status, stdout, stderr } = await runCommand(project.path, "generate", "--dry-run");
    assert.equal([status, stdout], [1, ""]);
    assert.match(stderr, /nothing would be written/);
    for (const [one, other] of [
      ["--dry-run", "--check"],
      ["--watch", "--check"],
      ["--watch", "--dry-run"],
    ] as const)
      assert.is((await runCommand(project.path, "generate", one, other)).status, 2);
  });
});

suite("generate --watch", (test) => {
  test.thorough(
    "generates after each save, also by rename, and continues after invalid input",
    async () => {
      await using project = await createPagesProject();
      await using watch = startProgram(project.path, "generate", "--watch");
      await watch.see("watching for changes");
      await edit(
        project.path,
        "workflow.yaml",
        "  dependents:\n",
        "  dependents:\n    service: { resource: v1/Service }\n",
      );
      await watch.see("created src/webpage/dependents/service.ts");

      const spec = join(project.path, "workflow.yaml");
      const text = await readFile(spec, "utf8");
      for (const broken of ["", "spec: {", text.replace("dependents:", "dependants:")]) {
        await writeFile(spec, broken);
        await watch.see(/error [a-z-]+: .*\n[^]*nothing was written/);
      }
      // As vim does it: the file is away for a moment.
      await rename(spec, `${spec}~`);
      await writeFile(join(project.path, "4913"), "");
      await rm(join(project.path, "4913"));
      await writeFile(`${spec}.new`, text.replace("service: {", "secret: { resource: v1/Secret }\n    service: {"));
      await rename(`${spec}.new`, spec);
      await rm(`${spec}~`);
      await watch.see("created src/webpage/dependents/secret.ts");

      await edit(
        project.path,
        "crds/webpages.example.com.yaml",
        "html:",
        "title: { type: string }\n                html:",
      );
      await watch.see(/updated src\/generated\/resources\/.*web-page\.ts/);
      watch.stop();
      assert.is(await watch.ended, 0, watch.output());
      assert.is((await runCommand(project.path, "generate", "--check")).status, 0);
    },
    LONG,
  );
});
