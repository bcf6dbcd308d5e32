import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const LOADER = new URL(import.meta.resolve("#generator/model/typescript.js")).href;

suite("compiled library", (test) => {
  test("is not written again by the next process", async () => {
    await using installed = await installLibrary();
    const { run, codeFile } = installed;
    assert.is(await run(), "42");
    const stored = await stat(codeFile);
    assert.is(await run(), "42");
    const { ino, mtimeMs } = await stat(codeFile);
    assert.equal({ ino, mtimeMs }, { ino: stored.ino, mtimeMs: stored.mtimeMs });
  });

  test("is replaced if damaged", async () => {
    await using installed = await installLibrary();
    const { run, codeFile } = installed;
    await run();
    const code = await readFile(codeFile);
    for (const at of [0, 34, 40, code.length - 1]) {
      const damaged = Buffer.from(code);
      damaged[at]! ^= 1;
      await writeFile(codeFile, damaged);
      assert.is(await run(), "42");
      assert.not.ok((await readFile(codeFile)).equals(damaged), `byte ${at}`);
    }
    await writeFile(codeFile, code.subarray(0, 10));
    assert.is(await run(), "42");
  });

  test("is not used for another text of the same length", async () => {
    await using installed = await installLibrary();
    const { run, library } = installed;
    await run();
    await writeFile(library, textFor(43));
    assert.is(await run(), "43");
  });

  test("is loaded without a cache if the cache folder cannot be written", async () => {
    await using installed = await installLibrary();
    const { run, folder, codeFile } = installed;
    await writeFile(join(folder, "node_modules/.cache"), "");
    assert.is(await run(), "42");
    assert.is(existsSync(codeFile), false);
  });
});

function textFor(answer: number): string {
  return `const { join } = require("node:path");\nmodule.exports = { answer: () => ${answer}, file: __filename, folder: join(__dirname) };\n`;
}

async function installLibrary() {
  const temporary = await createTemporaryFolder();
  const folder = temporary.path;
  const library = join(folder, "node_modules/example/lib/index.js");
  await mkdir(join(library, ".."), { recursive: true });
  await writeFile(library, textFor(42));
  const script = `const { requireCompiled } = await import(${JSON.stringify(LOADER)});
const { answer, file, folder } = requireCompiled(${JSON.stringify(library)});
if (file !== ${JSON.stringify(library)} || !file.startsWith(folder)) throw new Error(file);
console.log(answer());`;
  const run = async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
    assert.is(stderr, "");
    return stdout.trim();
  };
  const codeFile = join(folder, "node_modules/.cache/gen-operator/example-lib-index.js.bin");
  return { folder, library, run, codeFile, [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose]() };
}
