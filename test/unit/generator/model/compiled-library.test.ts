import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const LOADER = new URL(import.meta.resolve("#generator/model/typescript.js")).href;

suite("compiled library", (test) => {
  test("is used by the next process, which does not write it again", async () => {
    await using installed = await installLibrary();
    const { run, codeFile } = installed;
    assert.is(await run(), "42 compiled");
    const stored = await stat(codeFile);
    assert.is(await run(), "42 from the cache");
    const { ino, mtimeMs } = await stat(codeFile);
    assert.equal({ ino, mtimeMs }, { ino: stored.ino, mtimeMs: stored.mtimeMs });
  });

  test("is replaced if damaged", async () => {
    await using installed = await installLibrary();
    const { run, codeFile } = installed;
    await run();
    assert.is(await run(), "42 from the cache");
    const code = await readFile(codeFile);
    for (const at of [0, 34, 40, code.length - 1]) {
      const damaged = Buffer.from(code);
      damaged[at]! ^= 1;
      await writeFile(codeFile, damaged);
      assert.is(await run(), "42 compiled", `byte ${at}`);
      assert.not.ok((await readFile(codeFile)).equals(damaged), `byte ${at}`);
    }
    await writeFile(codeFile, code.subarray(0, 10));
    assert.is(await run(), "42 compiled");
    assert.is(await run(), "42 from the cache");
  });

  test("is not used for another text of the same length", async () => {
    await using installed = await installLibrary();
    const { run, library } = installed;
    await run();
    await writeFile(library, textFor(43));
    assert.is(await run(), "43 compiled");
    assert.is(await run(), "43 from the cache");
  });

  test("is loaded without a cache if the cache folder cannot be written", async () => {
    await using installed = await installLibrary();
    const { run, folder, codeFile } = installed;
    await writeFile(join(folder, "node_modules/.cache"), "");
    for (let time = 1; time <= 2; time++) assert.is(await run(), "42 compiled");
    assert.is(existsSync(codeFile), false);
  });
});

function textFor(answer: number): string {
  return `const { join } = require("node:path");\nmodule.exports = { answer: () => ${answer}, file: __filename, folder: join(__dirname) };\n`;
}

/** Lets `origin` say whether V8 took the code that was kept. */
const OBSERVED = `
import vm from "node:vm";
import { syncBuiltinESMExports } from "node:module";
let origin = "unknown";
const { Script } = vm;
vm.Script = class extends Script {
  constructor(text, options) {
    super(text, options);
    origin = this.cachedDataRejected === false ? "from the cache" : "compiled";
  }
};
syncBuiltinESMExports();`;

async function installLibrary() {
  const temporary = await createTemporaryFolder();
  const folder = temporary.path;
  const library = join(folder, "node_modules/example/lib/index.js");
  await mkdir(join(library, ".."), { recursive: true });
  await writeFile(library, textFor(42));
  const script = `${OBSERVED}
const { requireCompiled } = await import(${JSON.stringify(LOADER)});
const { answer, file, folder } = requireCompiled(${JSON.stringify(library)});
if (file !== ${JSON.stringify(library)} || !file.startsWith(folder)) throw new Error(file);
console.log(answer(), origin);`;
  const run = async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
    assert.is(stderr, "");
    return stdout.trim();
  };
  const codeFile = join(folder, "node_modules/.cache/gen-operator/example-lib-index.js.bin");
  return { folder, library, run, codeFile, [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose]() };
}
