import { existsSync } from "node:fs";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assert, suite } from "#test/support/suite.js";
import { createTemporaryFolder } from "#test/support/temporary-folder.js";
import { buildOnce, type BuildStep, stampOf } from "./build-once.js";

const NODE = process.execPath;

/** Creates a source folder with one file, and a cache folder beside it. */
async function createSource() {
  const folder = await createTemporaryFolder();
  const source = join(folder.path, "source");
  await mkdir(source);
  await writeFile(join(source, "main.txt"), "first");
  return {
    source,
    file: (name: string) => join(folder.path, name),
    build: (steps: readonly BuildStep[]) =>
      buildOnce({ name: "sample", source, steps, cache: join(folder.path, "cache") }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

async function failureOf(build: Promise<unknown>): Promise<string> {
  return build.then(
    () => "it did not fail",
    (error: Error) => error.message,
  );
}

suite("build cache", (test) => {
  test("rebuilds only if the source or the steps change", async () => {
    await using sample = await createSource();
    const log = sample.file("log");
    const note = (word: string) => [
      { program: NODE, args: ["-e", `require("fs").appendFileSync(${JSON.stringify(log)}, "${word} ")`] },
    ];
    const built = await sample.build(note("one"));
    await sample.build(note("one"));
    assert.is(await readFile(log, "utf8"), "one ");
    assert.is(await readFile(join(built, "main.txt"), "utf8"), "first");

    await sample.build(note("two"));
    await appendFile(join(sample.source, "main.txt"), " second");
    await sample.build(note("two"));
    assert.is(await readFile(log, "utf8"), "one two two ");
    assert.is(await readFile(join(built, "main.txt"), "utf8"), "first second");
  });

  test("ignores and does not copy earlier build output in the source", async () => {
    await using sample = await createSource();
    const before = await stampOf(sample.source, []);
    await mkdir(join(sample.source, "target"));
    await writeFile(join(sample.source, "target", "old.jar"), "old");
    assert.is(await stampOf(sample.source, []), before);
    assert.not.ok(existsSync(join(await sample.build([]), "target")));
  });

  test("fails with the output of a failed step, and runs it again next time", async () => {
    await using sample = await createSource();
    const steps = [{ program: NODE, args: ["-e", `console.error("no compiler"); process.exit(1)`] }];
    for (let attempt = 0; attempt < 2; attempt++)
      assert.match(await failureOf(sample.build(steps)), /failed in .*:\nno compiler/);
  });

  test("names a missing program", async () => {
    await using sample = await createSource();
    assert.is(
      await failureOf(sample.build([{ program: "no-such-compiler", args: [] }])),
      "no-such-compiler is not installed",
    );
  });
});
