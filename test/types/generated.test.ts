import { emitResources } from "#generator/output/emit-project.js";
import { chosenCompilers, compileProject, compilers, writeProject } from "../support/compile.js";
import { builtinResource, listBuiltinResources } from "../support/resource-models.js";
import { listSamples } from "../support/samples.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { checkManifests } from "./check-manifests.js";
import { deployments } from "./manifests.js";

const namesOf = (chosen: typeof compilers) => chosen.map(({ name }) => name).join(" and ");

// Compilers take seconds, more so when other tests run beside them.
const slow = { timeoutMs: 120_000 };

suite("generated code", (test) => {
  test(
    `every sample with its stubs compiles with ${namesOf(compilers)}`,
    async () => {
      await using folder = await createTemporaryFolder();
      const files = [];
      for (const { name, generate, readTypes } of listSamples())
        for (const file of [...(await generate()), ...(await readTypes())])
          files.push({ ...file, path: `${name}/${file.path}` });
      await writeProject(folder.path, files);
      for (const { command } of compilers) assert.is(compileProject(folder.path, command), "");
    },
    slow,
  );

  test(
    `every built-in kind compiles with isolatedDeclarations and ${namesOf(chosenCompilers)}`,
    async () => {
      await using folder = await createTemporaryFolder();
      const files = await emitResources(listBuiltinResources());
      assert.ok(files.length > 100);
      await writeProject(folder.path, files, { isolatedDeclarations: true, declaration: true });
      for (const { command } of chosenCompilers) assert.is(compileProject(folder.path, command), "");
    },
    slow,
  );

  test(
    "a Deployment accepts valid manifests and rejects wrong ones",
    () => checkManifests([builtinResource("apps", "v1", "Deployment")], [deployments]),
    slow,
  );
});
