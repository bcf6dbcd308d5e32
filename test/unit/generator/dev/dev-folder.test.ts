import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { DevFolder } from "#generator/dev/dev-folder.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

suite("the folder of a dev session", (test) => {
  test("is refused to a second session, also on another host, and is taken from a program that is none", async () => {
    await using project = await createTemporaryFolder();
    const pidFile = join(project.path, "dist/dev/pid");
    const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 60_000)", "dev"], { stdio: "ignore" });
    try {
      await mkdir(join(project.path, "dist/dev"), { recursive: true });
      const refused: [owner: string, expected: string][] = [
        [`${other.pid} ${hostname()}`, `process ${other.pid}) runs`],
        [`${other.pid}`, `process ${other.pid}) runs`],
        ["7 elsewhere", "process 7 on host elsewhere) runs"],
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
    for (const stale of [`${process.ppid} ${hostname()}`, `${process.pid} ${hostname()}`, "damaged"]) {
      await writeFile(pidFile, `${stale}\n`);
      const folder = await DevFolder.open(project.path);
      assert.is(await readFile(pidFile, "utf8"), `${process.pid} ${hostname()}\n`);
      assert.is(await folder.restore(), false);
      await folder[Symbol.asyncDispose]();
      await mkdir(join(project.path, "dist/dev"), { recursive: true });
    }
  });
});
