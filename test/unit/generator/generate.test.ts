import { cp } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "#generator/generate.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

suite("generate", (declareTest) => {
  // Compilers and formatters take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 60_000 });

  test("writes files despite warnings, and reports them as errors and writes nothing with strict", async () => {
    await using folder = await createTemporaryFolder();
    const project = join(repositoryRoot, "fixtures/rejected/warning-constant-condition");
    for (const part of ["crds", "workflow.yaml"])
      await cp(join(project, part), join(folder.path, part), { recursive: true });

    const strict = await generate({ project: folder.path, strict: true });
    assert.is(strict.report, undefined);
    assert.equal([...new Set(strict.diagnostics.map(({ severity }) => severity))], ["error"]);

    const { diagnostics, report } = await generate({ project: folder.path });
    assert.equal(
      [...new Set(diagnostics.map(({ severity, rule }) => `${severity} ${rule}`))],
      ["warning constant-condition"],
    );
    assert.ok(report?.created.includes("src/generated/webpage/workflow.ts"));
  });
});
