import { join } from "node:path";
import { emitResources } from "#generator/emit/emit-project.js";
import type { ResourceModel } from "#generator/model/project-model.js";
import { checkFiles, strictOptions, writeProject } from "../support/projects/compile.js";
import { assert } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import type { Manifests } from "./manifests.js";

/** Asserts that the types generated for kinds accept what is valid of them, and nothing that is not. */
export async function checkManifests(resources: readonly ResourceModel[], all: readonly Manifests[]): Promise<void> {
  await using folder = await createTemporaryFolder();
  const cases = all.flatMap((manifests) => [
    ...manifests.valid.map((literal) => ({ manifests, literal, problem: undefined })),
    ...manifests.invalid.map(([problem, literal]) => ({ manifests, literal, problem })),
  ]);
  const files = cases.map(({ manifests: { kind, module }, literal }, index) => ({
    path: `case-${index}.ts`,
    content: `import type { ${kind}, ${kind}Input } from "${module}";\nexport const object: ${kind} | (${kind}Input & Pick<${kind}, "status">) = ${literal};\n`,
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
