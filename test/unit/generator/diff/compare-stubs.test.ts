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

/** Compares two states of the code of a dependent, which differ if none are given. */
async function compare(
  kind: keyof typeof resources,
  stated: object,
  states: { readonly before?: string; readonly now?: string } = { before: "// before", now: "// now" },
): Promise<string[]> {
  await using folder = await createTemporaryFolder();
  for (const [state, code] of Object.entries(states)) {
    const place = join(folder.path, state, "src/shop/dependents");
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "report.ts"), code);
  }
  const dependent = { name: "report", resource: resources[kind], conditions: {}, ...stated };
  const controllers = [{ name: "shop", dependents: [dependent] }] as never;
  const [before, now] = [join(folder.path, "before"), join(folder.path, "now")];
  return (await compareStubs({ before, now, controllers })).map(({ effect, message }) => `${effect}: ${message}`);
}

suite("diff of a dependent's code", (test) => {
  test("is breaking for a Job, whose template is immutable", async () => {
    const [change = ""] = await compare("Job", {});
    assert.match(change, /^breaking: .* the API server rejects changes of .*spec\.template.* of an existing Job/);
    assert.match(change, "set onImmutable: recreate");
  });

  test("is compatible for a Job with onImmutable: recreate, which replaces it", async () => {
    const [change = ""] = await compare("Job", { onImmutable: "recreate" });
    assert.match(
      change,
      /^compatible: .* an existing Job is deleted and created again if .*spec\.template.* would change/,
    );
    assert.not.match(change, "set onImmutable");
  });

  test("reports nothing for mode: createOnly, once, or readOnly, which change no object", async () => {
    for (const mode of ["createOnly", "once", "readOnly"]) assert.equal(await compare("Job", { mode }), [], mode);
  });

  test("reports nothing for the same code, or without the code in one of the states", async () => {
    assert.equal(await compare("Job", {}, { before: "// same", now: "// same" }), []);
    assert.equal(await compare("Job", {}, { before: "// new" }), []);
    assert.equal(await compare("Job", {}, { now: "// gone" }), []);
  });

  test("is compatible for a StatefulSet, and lists its mutable fields", async () => {
    const [change = ""] = await compare("StatefulSet", {});
    assert.match(change, /^compatible: .* the API server rejects changes of spec, other than replicas, .*template/);
    assert.match(change, "set onImmutable: recreate");
  });

  test("is compatible for a Pod, whose image is mutable", async () => {
    const [change = ""] = await compare("Pod", {});
    assert.match(change, /^compatible: /);
  });
});
