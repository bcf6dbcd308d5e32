import { spawnSync } from "node:child_process";
import { chmod, cp, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { diskOperations, writeFiles } from "#generator/write/write-files.js";
import type { OutputFile } from "#generator/emit/output-file.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder } from "../../../../support/temporary-folder.js";
import { faultyOperations } from "./faulty-operations.js";
import { NEW, OLD, snapshot } from "./two-versions.js";

const write = { check: false };

/** Writes versions of a project one after the other, and returns what is there then. */
async function writeUndisturbed(...versions: readonly (readonly OutputFile[])[]) {
  await using folder = await createTemporaryFolder();
  for (const files of versions) await writeFiles(folder.path, files, write);
  return await snapshot(folder.path);
}

/** Returns how many operations the change from one version to the next one takes. */
async function countOperations(before: readonly OutputFile[]): Promise<number> {
  await using folder = await createTemporaryFolder();
  if (before.length > 0) await writeFiles(folder.path, before, write);
  const { operations, count } = faultyOperations({ at: Infinity, isCrash: false, fail: () => new Error() });
  await writeFiles(folder.path, NEW, { check: false, operations });
  return count();
}

/** Creates a project of which the change to the new version was cut off at an operation. */
async function cutOff(before: readonly OutputFile[], cut: (folder: string) => Promise<unknown>) {
  const folder = await createTemporaryFolder();
  if (before.length > 0) await writeFiles(folder.path, before, write);
  await cut(folder.path);
  return folder;
}

const crash = (at: number) => async (folder: string) => {
  const { operations } = faultyOperations({ at, isCrash: true, fail: () => new Error("crash") });
  await assert.rejects(writeFiles(folder, NEW, { check: false, operations }), "crash");
};

const kill = (at: number) => async (folder: string) => {
  const script = fileURLToPath(new URL("killed-writer.js", import.meta.url));
  const { signal, stderr } = spawnSync(process.execPath, [script, folder, String(at)], { encoding: "utf8" });
  assert.is(signal, "SIGKILL", stderr);
};

suite("interrupted write", (test) => {
  // One project for every write, on a disk that others use, too.
  const slowly = (title: string, body: () => Promise<void>) => test(title, body, { timeoutMs: 120_000 });

  slowly("is completed by the next run after a crash at any operation", async () => {
    for (const before of [[], OLD]) {
      const wanted = await writeUndisturbed(before.length > 0 ? before : NEW, NEW);
      const last = await countOperations(before);
      assert.ok(last > 15);
      for (let at = 1; at <= last; at += 1) {
        await using folder = await cutOff(before, crash(at));
        await writeFiles(folder.path, NEW, write);
        assert.equal(await snapshot(folder.path), wanted, `operation ${at}`);
      }
    }
  });

  test.thorough("leaves only stubs if the next run reverts the change after a crash", async () => {
    const wanted = await writeUndisturbed(OLD);
    const stub = NEW.find(({ path }) => path === "src/added/stub.ts");
    const last = await countOperations(OLD);
    for (let at = 1; at <= last; at += 1) {
      await using folder = await cutOff(OLD, crash(at));
      const { unused } = await writeFiles(folder.path, OLD, write);
      const { "src/added/stub.ts": left, ...others } = await snapshot(folder.path);
      assert.equal(others, wanted, `operation ${at}`);
      // A stub is whole or not there, and one that is there is named.
      if (left !== undefined) assert.is(left, stub?.content);
      assert.equal(unused, left === undefined ? [] : [stub?.path]);
    }
  });

  test.thorough("fails a check after a crash until the next run", async () => {
    const last = await countOperations(OLD);
    for (let at = 1; at <= last; at += 1) {
      await using folder = await cutOff(OLD, crash(at));
      assert.ok((await writeFiles(folder.path, NEW, { check: true })).stale.length > 0, `operation ${at}`);
    }
  });

  test.thorough(
    "is completed by the next run after SIGKILL at any operation",
    async () => {
      const wanted = await writeUndisturbed(OLD, NEW);
      const last = await countOperations(OLD);
      for (let at = 1; at <= last; at += 1) {
        await using folder = await cutOff(OLD, kill(at));
        await writeFiles(folder.path, NEW, write);
        assert.equal(await snapshot(folder.path), wanted, `operation ${at}`);
      }
    },
    { timeoutMs: 120_000 },
  );

  slowly("leaves no partial files on a full disk, and names the file in the error", async () => {
    const wanted = await writeUndisturbed(OLD, NEW);
    const last = await countOperations(OLD);
    const fail = () => Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    for (let at = 1; at <= last; at += 1) {
      await using folder = await createTemporaryFolder();
      await writeFiles(folder.path, OLD, write);
      const { operations } = faultyOperations({ at, isCrash: false, fail });
      const message = await writeFiles(folder.path, NEW, { check: false, operations }).then(
        () => "",
        (error: Error) => error.message,
      );
      // An empty folder that cannot be deleted is not worth an error.
      if (message !== "") assert.match(message, /^cannot (?:write|delete) (?:src|deploy)\/\S+: no space left/);
      const files = await snapshot(folder.path);
      for (const [path, text] of Object.entries(files)) {
        // Only what could not be deleted may be left, as a whole.
        const name = path.replace(/\.([^/]+)\.\d+-\d+\.gen-operator$/, "$1");
        const known = [...OLD, ...NEW].filter((file) => file.path === name).map(({ content }) => content);
        assert.ok(known.length === 0 ? name === path : known.includes(text), `${at}: ${path}`);
      }
      await writeFiles(folder.path, NEW, write);
      assert.equal(await snapshot(folder.path), wanted, `operation ${at}`);
    }
  });

  test("leaves no empty stub at a file size limit", async () => {
    await using folder = await createTemporaryFolder();
    const script =
      `import { writeFiles } from ${JSON.stringify(import.meta.resolve("#generator/write/write-files.js"))};` +
      `const stub = { path: "src/stub.ts", owner: "user", content: "x".repeat(1_000_000) };` +
      `await writeFiles(${JSON.stringify(folder.path)}, [stub], { check: false });`;
    // Blocks of 512 or 1024 bytes. Without the signal, a write beyond the limit is an error.
    const limited = `trap "" XFSZ; ulimit -f 100; exec "$0" --input-type=module -e "$1"`;
    const { status, stderr } = spawnSync("sh", ["-c", limited, process.execPath, script], { encoding: "utf8" });
    assert.is(status, 1);
    assert.match(stderr, "cannot write src/stub.ts: file too large");
    assert.equal(await readdir(join(folder.path, "src")), []);
  });

  test("keeps a stub that another process creates meanwhile", async () => {
    await using folder = await createTemporaryFolder();
    const theirs = { ...NEW.find(({ owner }) => owner === "user")!, content: "theirs" };
    const operations = {
      ...diskOperations,
      link: async (from: string, to: string) => {
        await writeFiles(folder.path, [theirs], write);
        return diskOperations.link(from, to);
      },
    };
    await writeFiles(folder.path, NEW, { check: false, operations });
    assert.is((await snapshot(folder.path))[theirs.path], "theirs");
  });

  test("keeps the mode of a replaced file", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, OLD, write);
    const file = join(folder.path, "src/generated/index.ts");
    await chmod(file, 0o640);
    await writeFiles(folder.path, NEW, write);
    assert.is((await stat(file)).mode & 0o777, 0o640);
  });

  test("keeps the temporary file of a running process", async () => {
    await using folder = await createTemporaryFolder();
    await writeFiles(folder.path, NEW, write);
    await using other = await createTemporaryFolder();
    await cp(folder.path, other.path, { recursive: true });
    const parent = join(other.path, `src/generated/.index.ts.${process.ppid}-1.gen-operator`);
    await cp(join(other.path, "src/generated/index.ts"), parent);
    await writeFiles(other.path, NEW, write);
    assert.ok((await stat(parent)).isFile());
  });
});
