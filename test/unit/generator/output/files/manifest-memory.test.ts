import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RememberedDependent } from "#generator/model/project-memory.js";
import { MANIFEST_PATH, manifestOf, readManifest, renderManifest } from "#generator/write/manifest.js";
import { writeFiles } from "#generator/write/write-files.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder } from "../../../../support/temporary-folder.js";
import { faultyOperations } from "./faulty-operations.js";
import { NEW, OLD } from "./two-versions.js";

const of = (name: string, resource = "apps/v1/Deployment"): RememberedDependent => ({
  controller: "page",
  name,
  resource,
});
const WEB = of("web");
const CACHE = of("cache", "v1/ConfigMap");

async function readDependents(folder: string): Promise<readonly string[]> {
  const text = await readFile(join(folder, MANIFEST_PATH), "utf8").catch(() => undefined);
  return (readManifest(text).dependents ?? []).map(({ name }) => name);
}

suite("manifest of generated files", (test) => {
  test("is read back as written, including untyped kinds", () => {
    const untyped = { apiVersion: "a.io/v1", kind: "Thing", plural: "things", scope: "Cluster" } as const;
    const dependents: RememberedDependent[] = [
      { controller: "page", name: "a", resource: untyped, cluster: "edge", deletion: "orphan", isReadOnly: true },
      { controller: "page", name: "b", resource: "external", state: "status ids.b" },
    ];
    assert.equal(readManifest(renderManifest(manifestOf(OLD, { dependents }))).dependents, dependents);
    assert.equal(readManifest(renderManifest(manifestOf(OLD, { dependents: [] }))).dependents, []);
    assert.is(readManifest(renderManifest(manifestOf(OLD, { dependents: undefined }))).dependents, undefined);
  });

  test("is read the same after reformatting", () => {
    const text = renderManifest(manifestOf(OLD, { dependents: [CACHE, WEB] }));
    const spread = JSON.stringify(JSON.parse(text), undefined, 4);
    assert.equal(readManifest(spread), readManifest(text));
  });

  test("contains the dependents of both sides of a merge conflict", () => {
    const text = renderManifest(manifestOf(OLD, { dependents: [WEB] })).replace(
      /^ +"page\/web".*\n/m,
      (line) => `<<<<<<< ours\n${line}=======\n    "page/cache": {"resource":"v1/ConfigMap"},\n${line}>>>>>>> theirs\n`,
    );
    assert.throws(() => JSON.parse(text) as unknown, "JSON");
    const names = new Set(readManifest(text).dependents?.map(({ name }) => name));
    assert.equal([...names].sort(), ["cache", "web"]);
  });

  test("skips a damaged line and keeps the others", () => {
    const text = renderManifest(manifestOf(OLD, { dependents: [CACHE, WEB] })).replace(
      '{ "resource": "v1/ConfigMap" }',
      '{ "resource":',
    );
    assert.equal(
      readManifest(text).dependents?.map(({ name }) => name),
      ["web"],
    );
  });

  test("keeps the dependents of the last run after a crash at any operation", async () => {
    let crashes = 0;
    for (let at = 1; ; at += 1) {
      await using folder = await createTemporaryFolder();
      await writeFiles(folder.path, OLD, { check: false, dependents: [WEB] });
      const { operations, count } = faultyOperations({ at, isCrash: true, fail: () => new Error("crash") });
      const failed = await writeFiles(folder.path, NEW, { check: false, dependents: [CACHE], operations }).then(
        () => false,
        () => true,
      );
      const remembered = await readDependents(folder.path);
      if (!failed) {
        assert.equal(remembered, ["cache"]);
        assert.ok(count() < at);
        break;
      }
      crashes += 1;
      // The manifest that ends the run is the last that is written; only then the last generation is over.
      assert.ok(remembered.includes("web") || remembered.join() === "cache", `operation ${at}: ${remembered.join()}`);
      if (remembered.join() === "cache") assert.is(readManifest(await readText(folder.path)).isUnfinished, false);
    }
    assert.ok(crashes > 10);
  });

  test("keeps its dependents if files are written without any", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, OLD, { check: false, dependents: [WEB] });
    await writeFiles(folder.path, NEW, { check: false });
    assert.equal(await readDependents(folder.path), ["web"]);
  });

  test("is reported as stale by a check with other dependents, and not changed", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, OLD, { check: false, dependents: [WEB] });
    const { stale } = await writeFiles(folder.path, OLD, { check: true, dependents: [CACHE] });
    assert.equal(stale, [MANIFEST_PATH]);
    await writeFile(join(folder.path, "other.txt"), "");
    assert.equal(await readDependents(folder.path), ["web"]);
  });
});

function readText(folder: string): Promise<string> {
  return readFile(join(folder, MANIFEST_PATH), "utf8");
}
