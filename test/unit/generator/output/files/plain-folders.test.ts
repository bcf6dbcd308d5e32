import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PlainFolders } from "#generator/read/project-files.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder } from "../../../../support/temporary-folder.js";

suite("PlainFolders", (test) => {
  test("reads files, but no links, folders, and paths outside of the root", async () => {
    await using outside = await createTemporaryFolder();
    await using folder = await createTemporaryFolder();
    const root = folder.path;
    await writeFile(join(outside.path, "a.ts"), "outside");
    await mkdir(join(root, "src/.hidden..x"), { recursive: true });
    await writeFile(join(root, "src/.hidden..x/a.ts"), "inside");
    await symlink(join(root, "src"), join(root, "linked"));
    await symlink(join(root, "src/.hidden..x/a.ts"), join(root, "src/link.ts"));
    const folders = new PlainFolders(root);
    assert.is(folders.read("src/.hidden..x/a.ts"), "inside");
    const outer = outside.path.slice(outside.path.lastIndexOf("/") + 1);
    const others = ["src", "src/.hidden..x", "linked/.hidden..x/a.ts", "src/link.ts", "src/none.ts", "none/a.ts"];
    for (const path of [...others, `../${outer}/a.ts`, join(outside.path, "a.ts"), "src/../src/link.ts", "", ".", "/"])
      assert.is(folders.read(path), undefined, path);
  });

  test("reports a path as free if nothing is there, not even a dangling link", async () => {
    await using folder = await createTemporaryFolder();
    const root = folder.path;
    await mkdir(join(root, "src/inner"), { recursive: true });
    await writeFile(join(root, "src/a.ts"), "");
    await symlink(join(root, "nowhere"), join(root, "src/dangling.ts"));
    await symlink(join(root, "src"), join(root, "linked"));
    const folders = new PlainFolders(root);
    const free = ["none.ts", "src/none.ts", "src/none/none.ts", "none/none/none.ts"];
    const taken = [
      "src",
      "src/inner",
      "src/a.ts",
      "src/dangling.ts",
      "src/dangling.ts/a.ts",
      "src/a.ts/a.ts",
      "linked/none.ts",
    ];
    for (const path of free) assert.is(folders.isFree(path), true, path);
    for (const path of [...taken, "../none.ts", "/none.ts", "src/../none.ts", ""])
      assert.is(folders.isFree(path), false, path);
  });
});
