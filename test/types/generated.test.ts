import type { ResourceModel } from "#generator/model/project-model.js";
import { emitResources } from "#generator/output/emit-project.js";
import { join } from "node:path";
import { checkFiles, compileProject, compilers, strictOptions, writeProject } from "../support/compile.js";
import { hasCorpus, listCorpusProjects, readCorpusProject } from "../support/corpus.js";
import { builtinResource, listBuiltinResources } from "../support/resource-models.js";
import { listSamples } from "../support/samples.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { certificates, clusters, deployments, type Manifests } from "./manifests.js";

const compilerNames = compilers.map(({ name }) => name).join(" and ");

// Compilers take seconds, more so when other tests run beside them.
const slow = { timeoutMs: 120_000 };

suite("generated code", (test) => {
  test(
    `a sample with its stubs compiles with ${compilerNames}`,
    async () => {
      for (const { generate } of listSamples()) {
        await using folder = await createTemporaryFolder();
        await writeProject(folder.path, await generate());
        for (const { command } of compilers) assert.is(compileProject(folder.path, command), "");
      }
    },
    slow,
  );

  test(
    `every built-in kind compiles with isolatedDeclarations and ${compilerNames}`,
    async () => {
      await using folder = await createTemporaryFolder();
      const files = await emitResources(listBuiltinResources());
      assert.ok(files.length > 100);
      await writeProject(folder.path, files, { isolatedDeclarations: true, declaration: true });
      for (const { command } of compilers) assert.is(compileProject(folder.path, command), "");
    },
    slow,
  );

  test("a Deployment accepts valid manifests and rejects wrong ones", async () => {
    await checkManifests([builtinResource("apps", "v1", "Deployment")], [deployments]);
  });
});

suite("generated code of other projects' kinds", (test) => {
  if (!hasCorpus) return test.skip("all kinds", "no collection of CRDs is at hand; CRD_CORPUS names one");

  test(
    `every kind compiles with ${compilerNames}`,
    async () => {
      await using folder = await createTemporaryFolder();
      const files = [];
      for (const project of listCorpusProjects())
        for (const file of await emitResources(readCorpusProject(project)))
          files.push({ ...file, path: `${project}/${file.path}` });
      assert.ok(files.length > 200);
      await writeProject(folder.path, files, { isolatedDeclarations: true, declaration: true });
      for (const { command } of compilers) assert.is(compileProject(folder.path, command), "");
    },
    slow,
  );

  test("a Certificate and a Cluster accept valid manifests and reject wrong ones", async () => {
    const kinds = [...readCorpusProject("cert-manager"), ...readCorpusProject("cloudnative-pg")].filter(
      ({ kind }) => kind === "Certificate" || kind === "Cluster",
    );
    await checkManifests(kinds, [certificates, clusters]);
  });
});

async function checkManifests(resources: readonly ResourceModel[], all: readonly Manifests[]): Promise<void> {
  await using folder = await createTemporaryFolder();
  const cases = all.flatMap((manifests) => [
    ...manifests.valid.map((literal) => ({ manifests, literal, problem: undefined })),
    ...manifests.invalid.map(([problem, literal]) => ({ manifests, literal, problem })),
  ]);
  const files = cases.map(({ manifests: { kind, module }, literal }, index) => ({
    path: `case-${index}.ts`,
    content: `import type { ${kind} } from "./src/generated/resources/${module}.js";\nexport const object: ${kind} = ${literal};\n`,
  }));
  await writeProject(folder.path, [...(await emitResources(resources)), ...files]);
  const problems = checkFiles(
    files.map(({ path }) => join(folder.path, path)),
    strictOptions(),
  );
  for (const [index, { literal, problem, manifests }] of cases.entries()) {
    const found = problems.get(join(folder.path, `case-${index}.ts`)) ?? [];
    if (problem === undefined) assert.equal(found, [], literal);
    else assert.ok(found.length > 0, `a ${manifests.kind} with ${problem} compiles: ${literal}`);
  }
}
