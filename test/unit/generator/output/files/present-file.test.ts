import { spawnSync } from "node:child_process";
import { chmod, mkdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GENERATED_HEADER, type OutputFile } from "#generator/emit/output-file.js";
import { writeFiles } from "#generator/write/write-files.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder, type TemporaryFolder } from "../../../../support/temporary-folder.js";

const FILES: readonly OutputFile[] = [
  { path: "src/generated/a.ts", owner: "generator", content: `${GENERATED_HEADER}\n` },
  { path: "src/thing/stub.ts", owner: "user", content: "stub" },
];
const PATHS = [...FILES.map(({ path }) => path), "src/generated/.gen-operator.json"];

/** What may be in place of a file, and what is said of it. */
const INSTEAD: { readonly [name: string]: readonly [create: (path: string) => Promise<unknown>, message: RegExp] } = {
  "a named pipe": [async (path) => spawnSync("mkfifo", [path]), /it is not a regular file/],
  "a folder": [(path) => mkdir(path), /it is a folder/],
  "a dangling symbolic link": [(path) => symlink("nowhere", path), /it is a broken symbolic link/],
  "a symbolic link to itself": [(path) => symlink(path, path), /it is a broken symbolic link/],
  "a symbolic link to a device": [(path) => symlink("/dev/zero", path), /it is outside the project/],
};

async function createProject(path: string): Promise<TemporaryFolder> {
  const folder = await createTemporaryFolder();
  await mkdir(join(folder.path, dirname(path)), { recursive: true });
  return folder;
}

suite("obstructed file", (test) => {
  for (const [name, [create, message]] of Object.entries(INSTEAD))
    test(`rejects ${name} with its path, and writes nothing`, async () => {
      for (const path of PATHS) {
        await using folder = await createProject(path);
        await create(join(folder.path, path));
        for (const check of [true, false]) {
          const error = await writeFiles(folder.path, FILES, { check }).then(
            () => undefined,
            (thrown: Error) => thrown,
          );
          assert.ok(error?.message.startsWith(`refused to write ${path}: `), error?.message);
          assert.match(error?.message ?? "", message);
        }
        const others = PATHS.filter((other) => other !== path);
        for (const other of others) await assert.rejects(readFile(join(folder.path, other)), "ENOENT");
      }
    });

  test("rejects a file in place of a folder with both paths", async () => {
    await using folder = await createProject("src/x");
    await writeFile(join(folder.path, "src/thing"), "");
    await assert.rejects(
      writeFiles(folder.path, FILES, { check: false }),
      "refused to write src/thing/stub.ts: src/thing is not a folder",
    );
  });

  test("rejects a dangling link in place of a folder, and keeps it", async () => {
    await using folder = await createProject("src/x");
    await symlink("../nowhere", join(folder.path, "src/thing"));
    await assert.rejects(
      writeFiles(folder.path, FILES, { check: false }),
      "refused to write src/thing/stub.ts: src/thing is a broken symbolic link",
    );
    assert.is(await readlink(join(folder.path, "src/thing")), "../nowhere");
  });

  test("keeps a named pipe in place of a file that is no longer generated, without blocking", async () => {
    await using folder = await createProject("src/generated/x");
    const manifest = { generatedFiles: ["src/generated/old.ts", "src/generated/older.ts"], stubs: ["src/old.ts"] };
    await writeFile(join(folder.path, "src/generated/.gen-operator.json"), JSON.stringify(manifest));
    for (const path of ["src/generated/old.ts", "src/old.ts"]) spawnSync("mkfifo", [join(folder.path, path)]);
    const { deleted, unused } = await writeFiles(folder.path, FILES, { check: false });
    assert.equal([deleted, unused], [[], []]);
  });

  const title = "names the file if its folder cannot be written";
  if (process.getuid?.() === 0) test.skip(title, "root may write anywhere");
  else
    test(title, async () => {
      await using folder = await createProject("src/generated/x");
      await chmod(join(folder.path, "src/generated"), 0o555);
      await assert.rejects(
        writeFiles(folder.path, FILES, { check: false }),
        "cannot write src/generated/.gen-operator.json: permission denied",
      );
    });
});
