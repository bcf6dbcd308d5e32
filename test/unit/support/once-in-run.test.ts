import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onceInRun, RUN_FOLDER } from "../../support/once-in-run.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

async function startRun() {
  const folder = await createTemporaryFolder();
  const before = process.env[RUN_FOLDER];
  process.env[RUN_FOLDER] = folder.path;
  return {
    async [Symbol.asyncDispose]() {
      process.env[RUN_FOLDER] = before;
      if (before === undefined) delete process.env[RUN_FOLDER];
      await folder[Symbol.asyncDispose]();
    },
  };
}

suite("what is made once in a run", (test) => {
  test("is filled by the first that asks, and shared with the others", async () => {
    await using _run = await startRun();
    let filled = 0;
    const fill = (folder: string) => writeFile(join(folder, "text"), `${++filled}`);
    const folders = await Promise.all([onceInRun("one", fill), onceInRun("one", fill)]);
    assert.equal(await Promise.all(folders.map(({ path }) => readFile(join(path, "text"), "utf8"))), ["1", "1"]);
    await Promise.all(folders.map((folder) => folder[Symbol.asyncDispose]()));
    assert.is(await readFile(join((await onceInRun("one", fill)).path, "text"), "utf8"), "1");
    await onceInRun("another", fill);
    assert.is(filled, 2);
  });

  test("fails for all if it cannot be made", async () => {
    await using _run = await startRun();
    const fill = () => Promise.reject(new Error("no space left"));
    const failed = await Promise.allSettled([onceInRun("one", fill), onceInRun("one", fill)]);
    assert.equal(
      failed.map((each) => each.status === "rejected" && /no space left/.test(String(each.reason))),
      [true, true],
    );
  });

  test("is a folder of its own without a run, which goes when it is disposed of", async () => {
    await using _run = await startRun();
    delete process.env[RUN_FOLDER];
    const fill = (folder: string) => writeFile(join(folder, "text"), "own");
    const folder = await onceInRun("one", fill);
    assert.is(await readFile(join(folder.path, "text"), "utf8"), "own");
    await folder[Symbol.asyncDispose]();
    await assert.rejects(readFile(join(folder.path, "text")), "ENOENT");
  });
});
