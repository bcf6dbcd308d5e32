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

suite("the memory of a manifest", (test) => {
  test("what is rendered is read back, kinds without a schema too", () => {
    const untyped = { apiVersion: "a.io/v1", kind: "Thing", plural: "things", scope: "Cluster" } as const;
    const dependents: RememberedDependent[] = [
      { controller: "page", name: "a", resource: untyped, cluster: "edge", deletion: "orphan", isReadOnly: true },
      { controller: "page", name: "b", resource: "external", state: "status ids.b" },
    ];
    assert.equal(readManifest(renderManifest(manifestOf(OLD, { dependents }))).dependents, dependents);
    assert.equal(readManifest(renderManifest(manifestOf(OLD, { dependents: [] }))).dependents, []);
    assert.is(readManifest(renderManifest(manifestOf(OLD, { dependents: undefined }))).dependents, undefined);
  });

  test("a manifest that somebody formatted is read as before", () => {
    const text = renderManifest(manifestOf(OLD, { dependents: [CACHE, WEB] }));
    const spread = JSON.stringify(JSON.parse(text), undefined, 4);
    assert.equal(readManifest(spread), readManifest(text));
  });

  test("of two branches that are not merged, all dependents are remembered", () => {
    const text = renderManifest(manifestOf(OLD, { dependents: [WEB] })).replace(
      /^ +"page\/web".*\n/m,
      (line) => `<<<<<<< ours\n${line}=======\n    "page/cache": {"resource":"v1/ConfigMap"},\n${line}>>>>>>> theirs\n`,
    );
    assert.throws(() => JSON.parse(text) as unknown, "JSON");
    const names = new Set(readManifest(text).dependents?.map(({ name }) => name));
    assert.equal([...names].sort(), ["cache", "web"]);
  });

  test("a line that somebody damaged is passed over, and the others are read", () => {
    const text = renderManifest(manifestOf(OLD, { dependents: [CACHE, WEB] })).replace(
      '{ "resource": "v1/ConfigMap" }',
      '{ "resource":',
    );
    assert.equal(
      readManifest(text).dependents?.map(({ name }) => name),
      ["web"],
    );
  });

  test("after a crash at any moment, no dependent of the last run is forgotten", async () => {
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

  test("files that know of no dependents leave what is remembered", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, OLD, { check: false, dependents: [WEB] });
    await writeFiles(folder.path, NEW, { check: false });
    assert.equal(await readDependents(folder.path), ["web"]);
  });

  test("a check fails if the manifest remembers something else, and changes nothing", async () => {
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
