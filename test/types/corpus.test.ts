import { emitResources } from "#generator/emit/emit-project.js";
import { chosenCompilers, writeProject } from "../support/projects/compile.js";
import { hasCorpus, listCorpusProjects, readCorpusProject } from "../support/kinds/corpus.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { checkManifests } from "./check-manifests.js";
import { certificates, clusters } from "./manifests.js";

const compilerNames = chosenCompilers.map(({ name }) => name).join(" and ");

// Compilers take seconds, more so when other tests run beside them.
const slow = { timeoutMs: 120_000 };

suite("kinds of other projects", (test) => {
  if (!hasCorpus) return test.skip("all tests", "no collection of CRDs is at hand; CRD_CORPUS names one");

  test(
    `compile with ${compilerNames}`,
    async () => {
      await using folder = await createTemporaryFolder();
      const files = [];
      for (const project of listCorpusProjects())
        for (const file of await emitResources(readCorpusProject(project)))
          files.push({ ...file, path: `${project}/${file.path}` });
      assert.ok(files.length > 200);
      await writeProject(folder.path, files, { isolatedDeclarations: true, declaration: true });
      for (const { compile } of chosenCompilers) assert.is(compile(folder.path), "");
    },
    slow,
  );

  test(
    "accept valid and reject invalid manifests of Certificate and Cluster",
    async () => {
      const kinds = [...readCorpusProject("cert-manager"), ...readCorpusProject("cloudnative-pg")].filter(
        ({ kind }) => kind === "Certificate" || kind === "Cluster",
      );
      await checkManifests(kinds, [certificates, clusters]);
    },
    slow,
  );
});
