import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OutputFile } from "#generator/emit/output-file.js";
import { writeFiles } from "#generator/write/write-files.js";
import { chosenCompilers, writeProject } from "../support/projects/compile.js";
import { isThorough, ONLY_THOROUGH } from "../support/runs.js";
import { listSamples } from "../support/projects/samples.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const samples = listSamples().map((sample) => {
  let generated: Promise<OutputFile[]> | undefined;
  return { ...sample, generateOnce: () => (generated ??= sample.generate()) };
});

for (const { name, folder, generate, generateOnce, remember, renderDeploy } of samples)
  suite(`sample ${name}`, (declareTest) => {
    // Compilers and formatters take seconds, more so when other tests run beside them.
    const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 60_000 });

    test("matches the generated files byte for byte", async () => {
      const files = (await generateOnce()).filter(({ owner }) => owner === "generator");
      for (const { path, content } of files) assert.is(await readFile(join(folder, path), "utf8"), content, path);
      const present = ["src/generated", "deploy/generated"].map((each) =>
        readdir(join(folder, each), { recursive: true, withFileTypes: true }),
      );
      const paths = (await Promise.all(present))
        .flat()
        .filter((entry) => entry.isFile() && /\.(ts|yaml)$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
      assert.equal(paths.sort(), files.map(({ path }) => path).sort());
    });

    test("has the manifests that a new project of its name gets", async () => {
      const files = await renderDeploy();
      for (const { path, content } of files) assert.is(await readFile(join(folder, path), "utf8"), content, path);
      const present = await readdir(join(folder, "deploy"), { recursive: true, withFileTypes: true });
      const own = present
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
        .filter((path) => !path.startsWith("deploy/generated/"));
      assert.equal(own.sort(), files.map(({ path }) => path).sort());
    });

    const twice = "is generated identically twice";
    if (name !== "webpage" && !isThorough) declareTest.skip(twice, ONLY_THOROUGH);
    else
      test(twice, async () => {
        const [first, second] = [await generateOnce(), await generate()];
        assert.equal(
          first.map(({ path, content }) => [path, content]),
          second.map(({ path, content }) => [path, content]),
        );
      });

    test("contains every user file that generate would create", async () => {
      const stubs = (await generateOnce()).filter(({ owner, path }) => owner === "user" && path.startsWith("src/"));
      assert.ok(stubs.length > 0);
      for (const { path } of stubs) assert.ok((await readFile(join(folder, path), "utf8")).length > 0, path);
    });

    test("generate --check reports changed, missing and surplus files, and writes nothing", async () => {
      await using copy = await createTemporaryFolder();
      for (const each of ["src", "deploy"]) await cp(join(folder, each), join(copy.path, each), { recursive: true });
      const files = await generateOnce();
      const remembered = await remember();
      assert.equal((await writeFiles(copy.path, files, { check: true, ...remembered })).stale, []);
      const generated = files.filter(({ owner }) => owner === "generator");
      const [changed, missing] = generated.filter(({ path }) => path.endsWith(".ts"));
      if (changed === undefined || missing === undefined) throw new Error("nothing is generated");
      const text = `${changed.content}// changed\n`;
      await writeFile(join(copy.path, changed.path), text);
      const report = await writeFiles(
        copy.path,
        generated.filter((file) => file !== missing),
        { check: true },
      );
      assert.equal(report.stale, ["src/generated/.gen-operator.json", changed.path, missing.path].sort());
      assert.is(await readFile(join(copy.path, changed.path), "utf8"), text);
      assert.is(await readFile(join(copy.path, missing.path), "utf8"), missing.content);
    });
  });

suite("sample stubs", (test) => {
  test(
    `compile unchanged with ${chosenCompilers.map(({ name }) => name).join(" and ")}`,
    async () => {
      await using project = await createTemporaryFolder();
      const files = [];
      for (const { name, generateOnce, readTypes } of samples) {
        const types = await readTypes();
        for (const file of [...types, ...(await generateOnce())]) files.push({ ...file, path: `${name}/${file.path}` });
      }
      await writeProject(project.path, files);
      for (const { compile } of chosenCompilers) assert.is(compile(project.path), "");
    },
    { timeoutMs: 120_000 },
  );
});
