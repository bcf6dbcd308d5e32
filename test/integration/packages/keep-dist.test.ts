// What is left of dist where `npm pack` has bundled a package.
import { spawnSync } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

suite("npm pack", (test) => {
  const begin = async (files: readonly string[]) => {
    const folder = await createTemporaryFolder();
    const write = async (name: string) => {
      await mkdir(join(folder.path, "dist"), { recursive: true });
      await writeFile(join(folder.path, "dist", name), name);
    };
    for (const name of files) await write(name);
    const keep = (when: string) => {
      const args = [join(repositoryRoot, "keep-dist.js"), when];
      const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder.path, encoding: "utf8" });
      assert.equal([stderr, status], ["", 0]);
    };
    const list = async () => (await readdir(folder.path, { recursive: true })).sort();
    return { write, keep, list, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
  };

  test("removes dist while packing and restores it afterwards", async () => {
    await using folder = await begin(["compiled.js"]);
    folder.keep("before");
    assert.equal(
      (await folder.list()).filter((path) => path.startsWith("dist")),
      [],
    );
    await folder.write("bundled.js");
    folder.keep("after");
    assert.equal(await folder.list(), ["dist", "dist/compiled.js"]);
  });

  test("leaves no dist if there was none", async () => {
    await using folder = await begin([]);
    folder.keep("before");
    await folder.write("bundled.js");
    folder.keep("after");
    assert.equal(await folder.list(), []);
  });

  test("restores dist after an earlier pack failed", async () => {
    await using folder = await begin(["compiled.js"]);
    folder.keep("before");
    await folder.write("half.js");
    folder.keep("before");
    await folder.write("bundled.js");
    folder.keep("after");
    assert.equal(await folder.list(), ["dist", "dist/compiled.js"]);
  });

  for (const name of ["apiserver", "generator"])
    test(`runs keep-dist.js before and after packing ${name}`, async () => {
      const text = await readFile(join(repositoryRoot, name, "package.json"), "utf8");
      const { prepack = "", postpack } = (JSON.parse(text) as { scripts: { [name: string]: string } }).scripts;
      assert.match(prepack, /^node \.\.\/keep-dist\.js before && /);
      assert.is(postpack, "node ../keep-dist.js after");
    });
});
