import { statSync } from "node:fs";
import { rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FileDigests, stampOf } from "#generator/memory/run-memory.js";
import { digestOf } from "#generator/stage.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const FILE = "file.txt";

async function createFile() {
  const folder = await createTemporaryFolder();
  const path = join(folder.path, FILE);
  await writeFile(path, "before");
  const writtenAt = (await stat(path)).ctimeMs;
  return {
    ...{ root: folder.path, path, writtenAt, stats: () => statSync(path) },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

suite("FileDigests", (test) => {
  test("does not read an unchanged file", async () => {
    await using file = await createFile();
    const digests = new FileDigests(file.root, { [FILE]: [stampOf(file.stats()), "what it held"] });
    assert.is(digests.digestOf(FILE, file.stats()), "what it held");
    assert.not.ok(digests.hasLearnt);
  });

  for (const [title, change] of [
    ["written with the same size and mtime", (path: string) => writeFile(path, "after.")],
    [
      "replaced by one with the same size and mtime",
      async (path: string) => {
        await writeFile(`${path}.new`, "after.");
        await rename(`${path}.new`, path);
      },
    ],
  ] as const)
    test(`reads a file that was ${title}`, async () => {
      await using file = await createFile();
      const { atime, mtime } = file.stats();
      const digests = new FileDigests(file.root, { [FILE]: [stampOf(file.stats()), "what it held"] });
      // The file system counts in ticks.
      while (file.stats().ctimeMs === file.writtenAt) await change(file.path);
      await utimes(file.path, atime, mtime);
      assert.is(digests.digestOf(FILE, file.stats()), digestOf("after."));
    });

  test("records a digest only when later writes would change the timestamps of the file", async () => {
    await using file = await createFile();
    const knownAt = (now: number) => {
      const digests = new FileDigests(file.root, {}, () => now);
      digests.digestOf(FILE, file.stats());
      return digests.knownOf([FILE, "another.txt"]);
    };
    assert.equal(knownAt(file.writtenAt + 2_000), {});
    assert.equal(knownAt(file.writtenAt + 3_000), { [FILE]: [stampOf(file.stats()), digestOf("before")] });
    // A clock that was set back says nothing of what was written when.
    assert.equal(knownAt(file.writtenAt - 60_000), {});
  });
});
