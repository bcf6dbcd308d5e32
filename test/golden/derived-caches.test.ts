import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "#generator/generate.js";
import { compileProject, compilers } from "../support/compile.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const sample = join(repositoryRoot, "fixtures/samples/podwatch");

/** Copies the sample so that it can be changed and compiled. */
async function createProject() {
  const folder = await createTemporaryFolder();
  for (const part of ["src", "deploy", "crds", "workflow.yaml"])
    await cp(join(sample, part), join(folder.path, part), { recursive: true });
  await symlink(join(repositoryRoot, "node_modules"), join(folder.path, "node_modules"));
  await writeFile(join(folder.path, "package.json"), JSON.stringify({ name: "podwatch", type: "module" }));
  const compilerOptions = { composite: false, rootDir: ".", noEmit: true, tsBuildInfoFile: null };
  const config = { extends: join(repositoryRoot, "tsconfig.json"), compilerOptions, include: ["src"] };
  await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify(config));
  return folder;
}

suite("derived caches of a project", (test) => {
  const command = compilers.at(-1)?.command ?? "";

  test(
    "code that reads more does not compile until it was generated again",
    async () => {
      await using folder = await createProject();
      assert.is(compileProject(folder.path, command), "");

      const file = join(folder.path, "src/podwatch/reconciler.ts");
      const text = await readFile(file, "utf8");
      await writeFile(file, text.replace("({ status }) => status?.phase", "({ spec }) => spec?.nodeName"));
      assert.match(compileProject(folder.path, command), /reconciler\.ts.* TS2339: Property 'spec' does not exist/);
      assert.is((await generate({ project: folder.path, check: true })).report?.stale.length, 2);

      const { diagnostics, caches } = await generate({ project: folder.path });
      assert.equal(diagnostics, []);
      assert.equal(caches, [
        "pods: keeps spec.nodeName, status.phase only (read in src/podwatch/reconciler.ts:8, workflow.yaml:19)",
        "pods: watches only objects with the label example.com/watched-by, which its mapping asks for",
        "node: keeps metadata only (nothing else is read)",
      ]);
      assert.is(compileProject(folder.path, command), "");
    },
    { timeoutMs: 120_000 },
  );

  test(
    "what the spec states is an error where the code reads more",
    async () => {
      await using folder = await createProject();
      const file = join(folder.path, "workflow.yaml");
      const text = await readFile(file, "utf8");
      await writeFile(file, text.replace("resource: v1/Pod\n", "resource: v1/Pod\n      cache: metadata\n"));
      const { diagnostics, report } = await generate({ project: folder.path });
      assert.is(report, undefined);
      assert.equal(
        diagnostics.map(({ rule, position }) => `${rule} ${position?.line}`),
        ["cache-form 16", "when-type 20", "when-type 20"],
      );
    },
    { timeoutMs: 120_000 },
  );
});
