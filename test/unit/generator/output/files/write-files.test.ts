import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GENERATED_HEADER, type OutputFile } from "#generator/emit/output-file.js";
import { writeFiles } from "#generator/write/write-files.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder } from "../../../../support/temporary-folder.js";

const generated = (path: string, text = ""): OutputFile => ({
  path,
  owner: "generator",
  content: `${GENERATED_HEADER}\n${text}`,
});
const stub = (path: string, content = "stub"): OutputFile => ({ path, owner: "user", content });
const write = { check: false };

suite("writeFiles", (test) => {
  test("writes nothing in a second run", async () => {
    await using folder = await createTemporaryFolder();
    const files = [generated("src/generated/a.ts"), stub("src/main.ts")];
    assert.equal((await writeFiles(folder.path, files, write)).created, ["src/generated/a.ts", "src/main.ts"]);
    const before = await stat(join(folder.path, "src/generated/a.ts"));
    const report = await writeFiles(folder.path, files, write);
    assert.equal(
      [report.created, report.updated, report.unchanged, report.kept],
      [[], [], ["src/generated/a.ts"], ["src/main.ts"]],
    );
    assert.is((await stat(join(folder.path, "src/generated/a.ts"))).mtimeMs, before.mtimeMs);
    assert.equal((await readdir(join(folder.path, "src/generated"))).sort(), [".gen-operator.json", "a.ts"]);
  });

  test("keeps an existing user file", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, [stub("src/main.ts", "theirs")], write);
    const report = await writeFiles(folder.path, [stub("src/main.ts", "ours")], write);
    assert.equal(report.kept, ["src/main.ts"]);
    assert.is(await readFile(join(folder.path, "src/main.ts"), "utf8"), "theirs");
  });

  test("rejects a file without the generated header and writes nothing", async () => {
    await using folder = await createTemporaryFolder();
    await mkdir(join(folder.path, "src/generated"), { recursive: true });
    await writeFile(join(folder.path, "src/generated/b.ts"), "mine");
    const files = [generated("src/generated/a.ts"), generated("src/generated/b.ts")];
    await assert.rejects(writeFiles(folder.path, files, write), /refused to overwrite src\/generated\/b\.ts/);
    assert.equal(await readdir(join(folder.path, "src/generated")), ["b.ts"]);
    assert.is(await readFile(join(folder.path, "src/generated/b.ts"), "utf8"), "mine");
  });

  test("deletes files that are no longer generated, and empty folders", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, [generated("src/generated/a.ts"), generated("src/generated/old/deep/b.ts")], write);
    const report = await writeFiles(folder.path, [generated("src/generated/a.ts")], write);
    assert.equal(report.deleted, ["src/generated/old/deep/b.ts"]);
    assert.equal((await readdir(join(folder.path, "src/generated"))).sort(), [".gen-operator.json", "a.ts"]);
  });

  test("keeps a stub that is no longer needed, and reports it once", async () => {
    await using folder = await createTemporaryFolder();
    const [first, second] = [stub("src/page/a.ts"), stub("src/page/b.ts")];
    await writeFiles(folder.path, [generated("src/generated/a.ts"), first, second], write);
    assert.equal((await writeFiles(folder.path, [generated("src/generated/a.ts"), first], write)).unused, [
      second.path,
    ]);
    assert.is(await readFile(join(folder.path, second.path), "utf8"), "stub");
    assert.equal((await writeFiles(folder.path, [generated("src/generated/a.ts"), first], write)).unused, []);
  });

  test("does not report tests and other stubs without generated importers as unused", async () => {
    await using folder = await createTemporaryFolder();
    const stubs = [stub("test/page.test.ts"), stub("src/main.ts")];
    await writeFiles(folder.path, [generated("src/generated/a.ts"), ...stubs], write);
    assert.equal((await writeFiles(folder.path, [generated("src/generated/a.ts")], write)).unused, []);
  });

  test("deletes no generated file when only user files are written", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, [generated("src/generated/a.ts"), stub("src/a.ts")], write);
    const { deleted, unused } = await writeFiles(folder.path, [stub("workflow.yaml")], write);
    assert.equal([deleted, unused], [[], []]);
    assert.ok(await readFile(join(folder.path, "src/generated/a.ts"), "utf8"));
  });

  test("keeps stale files that the user changed or that the manifest does not list", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, [generated("src/generated/a.ts"), generated("src/generated/b.ts")], write);
    await writeFile(join(folder.path, "src/generated/b.ts"), "// mine now\n");
    await writeFile(join(folder.path, "src/generated/c.ts"), `${GENERATED_HEADER}\n`);
    const report = await writeFiles(folder.path, [generated("src/generated/a.ts")], write);
    assert.equal(report.deleted, []);
    assert.equal((await readdir(join(folder.path, "src/generated"))).sort(), [
      ".gen-operator.json",
      "a.ts",
      "b.ts",
      "c.ts",
    ]);
  });

  for (const path of ["../outside.ts", "/tmp/outside.ts", "src/../../outside.ts", "a//b.ts", "a\\b.ts", ""])
    test(`rejects the path "${path}"`, async () => {
      await using folder = await createTemporaryFolder();
      await assert.rejects(writeFiles(folder.path, [generated(path)], write), /outside the project/);
      assert.equal(await readdir(folder.path), []);
    });

  test("rejects a symbolic link that leads outside of the project", async () => {
    await using folder = await createTemporaryFolder();
    await using other = await createTemporaryFolder();
    await symlink(other.path, join(folder.path, "src"));
    await assert.rejects(writeFiles(folder.path, [generated("src/generated/a.ts")], write), /outside the project/);
    assert.equal(await readdir(other.path), []);
  });

  test("deletes nothing outside of the project for an edited manifest", async () => {
    await using folder = await createTemporaryFolder();
    await using other = await createTemporaryFolder();
    const victim = join(other.path, "victim.ts");
    await writeFile(victim, `${GENERATED_HEADER}\n`);
    const project = join(folder.path, "project");
    await mkdir(join(project, "src/generated"), { recursive: true });
    await writeFile(join(folder.path, "near.ts"), `${GENERATED_HEADER}\n`);
    const manifest = { generatedFiles: [victim, "../near.ts", 7] };
    await writeFile(join(project, "src/generated/.gen-operator.json"), JSON.stringify(manifest));
    assert.equal((await writeFiles(project, [generated("src/generated/a.ts")], write)).deleted, []);
    assert.equal((await readdir(folder.path)).sort(), ["near.ts", "project"]);
    assert.equal(await readdir(other.path), ["victim.ts"]);
  });

  test("writes nothing in a check, and ignores missing stubs", async () => {
    await using folder = await createTemporaryFolder();
    const report = await writeFiles(folder.path, [generated("src/generated/a.ts"), stub("src/main.ts")], {
      check: true,
    });
    assert.equal(report.stale, ["src/generated/.gen-operator.json", "src/generated/a.ts"]);
    assert.equal(await readdir(folder.path), []);
  });
});
