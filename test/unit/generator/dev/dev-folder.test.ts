import { spawn } from "node:child_process";
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { DevFolder } from "#generator/dev/dev-folder.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

suite("dev folder", (test) => {
  test("rejects a second session, also of another host, and replaces a stale pid file", async () => {
    await using project = await createTemporaryFolder();
    const pidFile = join(project.path, "dist/dev/pid");
    const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 60_000)", "dev"], { stdio: "ignore" });
    try {
      await mkdir(join(project.path, "dist/dev"), { recursive: true });
      const refused: [owner: string, expected: string][] = [
        [`${other.pid} ${hostname()}`, `process ${other.pid}) is running`],
        [`${other.pid}`, `process ${other.pid}) is running`],
        ["7 elsewhere", "process 7 on host elsewhere) is running"],
      ];
      for (const [owner, expected] of refused) {
        await writeFile(pidFile, `${owner}\n`);
        await assert.rejects(DevFolder.open(project.path), expected);
        assert.is(await readFile(pidFile, "utf8"), `${owner}\n`);
      }
    } finally {
      other.kill("SIGKILL");
    }
    // The parent runs the tests.
    await writeFile(join(project.path, "dist/dev/.gen-operator-dev"), "");
    for (const stale of [`${process.ppid} ${hostname()}`, `${process.pid} ${hostname()}`, "damaged"]) {
      await writeFile(pidFile, `${stale}\n`);
      const folder = await DevFolder.open(project.path);
      assert.is(await readFile(pidFile, "utf8"), `${process.pid} ${hostname()}\n`);
      assert.is(await folder.restore(), false);
      await folder[Symbol.asyncDispose]();
      await mkdir(join(project.path, "dist/dev"), { recursive: true });
      await writeFile(join(project.path, "dist/dev/.gen-operator-dev"), "");
    }
  });

  test("keeps a folder that dev did not create, and names it in the error", async () => {
    for (const content of [{ "main.js": "mine" }, { pid: "damaged" }, { pid: `${process.pid} ${hostname()}\n` }]) {
      await using project = await createTemporaryFolder();
      const path = join(project.path, "dist/dev");
      await mkdir(path, { recursive: true });
      for (const [name, text] of Object.entries(content)) await writeFile(join(path, name), text);
      await assert.rejects(DevFolder.open(project.path), `${path} was not created by gen-operator dev`);
      assert.equal(await readdir(path), Object.keys(content));
    }
  });

  test("deletes nothing through a symbolic link at dist/dev or dist", async () => {
    for (const link of ["dist/dev", "dist"]) {
      await using project = await createTemporaryFolder();
      await using other = await createTemporaryFolder();
      // A session in the other project that was killed: its mark does not count here.
      await mkdir(join(other.path, "dev"));
      for (const file of [".gen-operator-dev", "kept", "dev/.gen-operator-dev", "dev/kept"])
        await writeFile(join(other.path, file), "kept");
      if (link !== "dist") await mkdir(join(project.path, "dist"));
      await symlink(other.path, join(project.path, link));
      await assert.rejects(DevFolder.open(project.path), `${join(project.path, link)} is a symbolic link`);
      assert.equal((await readdir(other.path)).sort(), [".gen-operator-dev", "dev", "kept"]);
      assert.equal((await readdir(join(other.path, "dev"))).sort(), [".gen-operator-dev", "kept"]);
    }
  });

  test("keeps a link or folder that replaces it during the session", async () => {
    await using project = await createTemporaryFolder();
    await using other = await createTemporaryFolder();
    const path = join(project.path, "dist/dev");
    const folder = await DevFolder.open(project.path);
    await rename(path, join(other.path, "moved"));
    await symlink(join(other.path, "moved"), path);
    await assert.rejects(folder.restore(), "is a symbolic link");
    await rm(path);
    await mkdir(path);
    await writeFile(join(path, "main.js"), "built by the user");
    await assert.rejects(folder.restore(), "was not created by gen-operator dev");
    await mkdir(join(path, "src"));
    await rename(join(path, "main.js"), join(path, "src/main.js"));
    await assert.rejects(folder.restore(), "was not created by gen-operator dev");
    await folder[Symbol.asyncDispose]();
    assert.equal(await readdir(path), ["src"]);
    assert.equal(await readdir(join(path, "src")), ["main.js"]);
    assert.is((await readdir(join(other.path, "moved"))).includes("pid"), true);
  });

  test("is restored after files were deleted, and removed at the end of the session", async () => {
    for (const gone of [["pid", ".gen-operator-dev"], [".gen-operator-dev"], ["pid"]]) {
      await using project = await createTemporaryFolder();
      await mkdir(join(project.path, "src/page"), { recursive: true });
      for (const file of ["src/main.ts", "src/page/names.json"]) await writeFile(join(project.path, file), "");
      const path = join(project.path, "dist/dev");
      const folder = await DevFolder.open(project.path);
      const damage = async () => {
        for (const file of gone) await rm(join(path, file));
        await mkdir(join(path, "src/page"), { recursive: true });
        for (const file of ["kubeconfig", "src/main.js", "src/main.js.map", "src/page/names.json"])
          await writeFile(join(path, file), "");
      };
      await damage();
      assert.is(await folder.restore(), true);
      assert.equal((await readdir(path)).sort(), [".gen-operator-dev", "pid"]);
      await damage();
      await folder[Symbol.asyncDispose]();
      assert.equal((await readdir(project.path)).sort(), ["src"]);
    }
  });

  test("notifies on each deletion, also on repeated ones", async () => {
    await using project = await createTemporaryFolder();
    await using folder = await DevFolder.open(project.path);
    let told = 0;
    folder.watch(() => told++);
    for (let times = 1; times <= 3; times++) {
      await rm(join(project.path, "dist"), { recursive: true });
      await waitFor(`the ${times}. deletion`, () => told >= times);
      assert.is(await folder.restore(), true);
      told = times;
    }
  });

  test("keeps an existing dist folder, even an empty one", async () => {
    await using project = await createTemporaryFolder();
    await (await DevFolder.open(project.path))[Symbol.asyncDispose]();
    assert.equal(await readdir(project.path), []);
    await mkdir(join(project.path, "dist"));
    await (await DevFolder.open(project.path))[Symbol.asyncDispose]();
    assert.equal(await readdir(project.path), ["dist"]);
  });
});
