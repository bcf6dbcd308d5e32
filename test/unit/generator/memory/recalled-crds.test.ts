import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { StageCache, digestOf } from "#generator/stage.js";
import { readKnownFile } from "#generator/read/project-files.js";
import { lazyCrdFile } from "#generator/read/read-project.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const FILE = "crds/webpages.example.com.yaml";
const SAMPLE = join(repositoryRoot, "fixtures/samples/webpage");

/** Returns the file of the sample, and how often its text was read. */
async function createSource() {
  const text = await readFile(join(SAMPLE, FILE), "utf8");
  const reads = { count: 0 };
  const readText = () => {
    reads.count += 1;
    return text;
  };
  return { source: { file: FILE, digest: digestOf(text), readText }, reads };
}

suite("recalled CRD", (test) => {
  test("is read from its file again only for a schema", async () => {
    const first = new StageCache();
    const { source, reads } = await createSource();
    const before = lazyCrdFile(source, first.stage).read();
    assert.is(reads.count, 1);

    assert.not.ok(lazyCrdFile(source, new StageCache().stage).isRead);
    const known = lazyCrdFile(source, new StageCache(first.used).stage);
    assert.ok(known.isRead);
    const again = known.read();
    assert.equal(
      again.crds.map(({ kind, versions }) => [kind, versions.map(({ name }) => name)]),
      before.crds.map(({ kind, versions }) => [kind, versions.map(({ name }) => name)]),
    );
    assert.is(reads.count, 1);
    assert.equal(again.crds[0]!.versions[0]!.schema, before.crds[0]!.versions[0]!.schema);
    assert.is(reads.count, 2);
  });

  test("is rejected if its file has changed since the start of the run", async () => {
    await using folder = await createTemporaryFolder();
    await cp(join(SAMPLE, "crds"), join(folder.path, "crds"), { recursive: true });
    const text = await readFile(join(folder.path, FILE), "utf8");
    assert.is(readKnownFile(folder.path, FILE, digestOf(text)), text);
    await writeFile(join(folder.path, FILE), `${text}\n`);
    assert.throws(() => readKnownFile(folder.path, FILE, digestOf(text)), `refused to use ${FILE}`);
  });
});
