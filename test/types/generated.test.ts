import { emitResources } from "#generator/output/emit-project.js";
import { chosenCompilers, compileProject, writeProject } from "../support/compile.js";
import { builtinResource, listBuiltinResources } from "../support/resource-models.js";
import { isThorough, ONLY_THOROUGH } from "../support/runs.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { checkManifests } from "./check-manifests.js";
import { deployments } from "./manifests.js";

const compilerNames = chosenCompilers.map(({ name }) => name).join(" and ");

// Compilers take seconds, more so when other tests run beside them.
const slow = { timeoutMs: 120_000 };

suite("generated code", (test) => {
  const everyKind = `every built-in kind compiles with isolatedDeclarations and ${compilerNames}`;
  // The samples have the most common ones.
  if (!isThorough) test.skip(everyKind, ONLY_THOROUGH);
  else
    test(
      everyKind,
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
