import fc from "../support/fast-check.js";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { buildModel } from "#generator/check/build-model.js";
import { emitResources } from "#generator/emit/emit-project.js";
import type { OutputFile } from "#generator/emit/output-file.js";
import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { chosenCompilers, writeProject } from "../support/projects/compile.js";
import { crdJson } from "../support/kinds/hostile-crds.js";
import { isThorough, seed } from "../support/runs.js";
import { structuralSchema } from "../support/kinds/structural-schemas.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const CRDS = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
const STRICT = {
  ...{ isolatedDeclarations: true, declaration: true, verbatimModuleSyntax: true, erasableSyntaxOnly: true },
  exactOptionalPropertyTypes: true,
};

/** Returns the code of a CRD; throws what is wrong with it. */
async function emitOrThrow(text: string): Promise<readonly OutputFile[]> {
  const { crds, diagnostics } = readCrds({ file: "crd.json", text });
  if (diagnostics.length > 0) throw new Error(`${diagnostics.map(formatDiagnostic).join("\n")}\n${text}`);
  const { model } = await buildModel({ crds, workflows: [], builtin: await readBuiltinKinds() });
  return emitResources(model?.resources ?? []);
}

suite("random structural schemas", (test) => {
  const count = isThorough ? 500 : 30;

  test(
    `are accepted by the API server, and generate code that compiles (${count} schemas, seed ${seed})`,
    async () => {
      await using server = await startTestApiServer();
      await using folder = await createTemporaryFolder();
      const schemas = fc.sample(structuralSchema, { numRuns: count, seed });
      const files: OutputFile[] = [];
      for (const [index, schema] of schemas.entries()) {
        const text = crdJson(schema, { kind: `Kind${index}` });
        const { status, body } = await apiRequest(server, CRDS, { body: JSON.parse(text) as object });
        assert.is(status, 201, `${JSON.stringify(body)}\n${text}`);
        const emitted = await emitOrThrow(text);
        files.push(...emitted.map((file) => ({ ...file, path: `case-${index}/${file.path}` })));
      }
      await writeProject(folder.path, files, STRICT);
      for (const { compile } of chosenCompilers) assert.is(compile(folder.path), "");
    },
    { timeoutMs: 240_000 },
  );
});
