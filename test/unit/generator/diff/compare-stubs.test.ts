import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compareStubs } from "#generator/diff/diff-project.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const resources = {
  Job: { group: "batch", kind: "Job" },
  Pod: { group: "", kind: "Pod" },
  StatefulSet: { group: "apps", kind: "StatefulSet" },
};

/** Compares two states of the code of a dependent that differ. */
async function compare(kind: keyof typeof resources, stated: object): Promise<string[]> {
  await using folder = await createTemporaryFolder();
  for (const state of ["before", "now"]) {
    const place = join(folder.path, state, "src/shop/dependents");
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "report.ts"), `// ${state}`);
  }
  const dependent = { name: "report", resource: resources[kind], conditions: {}, ...stated };
  const controllers = [{ name: "shop", dependents: [dependent] }] as never;
  const [before, now] = [join(folder.path, "before"), join(folder.path, "now")];
  return (await compareStubs({ before, now, controllers })).map(({ effect, message }) => `${effect}: ${message}`);
}

suite("diff of a dependent's code", (test) => {
  test("is breaking for a Job, whose template is immutable", async () => {
    const [change = ""] = await compare("Job", {});
    assert.match(change, /^breaking: .* of a Job that exists, the API server refuses a change of .*spec\.template/);
    assert.match(change, "set onImmutable: recreate, to replace it");
  });

  test("is compatible for a Job with onImmutable: recreate, which replaces it", async () => {
    const [change = ""] = await compare("Job", { onImmutable: "recreate" });
    assert.match(change, /^compatible: .* a Job that exists is deleted and created again if/);
  });

  test("reports nothing for mode: createOnly", async () => {
    assert.equal(await compare("Job", { mode: "createOnly" }), []);
  });

  test("is compatible for a StatefulSet, and lists its mutable fields", async () => {
    const [change = ""] = await compare("StatefulSet", {});
    assert.match(change, /^compatible: .* the API server refuses a change of spec, other than replicas, .*template/);
    assert.match(change, "set onImmutable: recreate, to replace it");
  });

  test("is compatible for a Pod, whose image is mutable", async () => {
    const [change = ""] = await compare("Pod", {});
    assert.match(change, /^compatible: /);
  });
});
