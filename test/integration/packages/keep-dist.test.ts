// What is left of dist where `npm pack` has bundled a package.
import { spawnSync } from "node:child_process";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
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
    test(`packs what ${name} bundles, and restores what was compiled before`, async () => {
      await using folder = await createTemporaryFolder();
      const write = async (path: string, text: string) => {
        await mkdir(join(folder.path, path, ".."), { recursive: true });
        await writeFile(join(folder.path, path), text);
      };
      // The scripts of the package, beside programs that leave a trace in place of the compiler and the bundler.
      const manifest = await readFile(join(repositoryRoot, name, "package.json"), "utf8");
      const { scripts } = JSON.parse(manifest) as { scripts: object };
      const trace = (file: string) =>
        `require("fs").mkdirSync("dist", { recursive: true }); require("fs").writeFileSync("dist/${file}", "");`;
      await write("package/package.json", JSON.stringify({ name, version: "1.0.0", files: ["dist"], scripts }));
      await write("package/dist/compiled-before.js", "");
      await write("package/bundle.js", trace("bundled.js"));
      await write("node_modules/typescript-7/bin/tsc", trace("compiled.js"));
      await copyFile(join(repositoryRoot, "keep-dist.js"), join(folder.path, "keep-dist.mjs"));
      await write("keep-dist.js", 'import("./keep-dist.mjs");');
      const cwd = join(folder.path, "package");
      const { status, stdout, stderr } = spawnSync("npm", ["pack", "--json"], { cwd, encoding: "utf8" });
      assert.is(status, 0, stderr);
      const [packed] = JSON.parse(stdout) as { files: { path: string }[] }[];
      const paths = packed?.files.map(({ path }) => path).filter((path) => path.startsWith("dist/"));
      assert.equal(paths, ["dist/bundled.js", "dist/compiled.js"]);
      assert.equal(await readdir(join(cwd, "dist")), ["compiled-before.js"]);
    });
});
