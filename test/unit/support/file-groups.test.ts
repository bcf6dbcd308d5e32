import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { groupFiles } from "../../support/file-groups.js";
import { runFiles } from "../../support/run.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const LAW = 'import { assert, suite } from "../../support/suite.js";\n';

/** Returns the groups of files with these texts, by their paths. */
async function groupsOf(texts: Record<string, string>, { isQuick = true } = {}): Promise<string[][]> {
  await using folder = await createTemporaryFolder();
  for (const [path, text] of Object.entries(texts)) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  const files = Object.keys(texts).filter((path) => path.endsWith(".test.js"));
  const groups = groupFiles(
    files.map((path) => join(folder.path, path)),
    folder.path,
    isQuick,
  );
  return groups.map((group) => group.map((file) => file.slice(folder.path.length + 1)));
}

suite("group of test files", (test) => {
  test("contains unit tests of one package without external access", async () => {
    const reads = 'import { readFileSync } from "node:fs";\nimport { join } from "node:path";\n';
    const groups = await groupsOf({
      "unit/a/one.test.js": LAW,
      "unit/a/two.test.js": LAW + reads,
      "unit/b/one.test.js": LAW,
      "e2e/one.test.js": LAW,
      "e2e/two.test.js": LAW,
    });
    assert.equal(groups, [
      ["unit/a/one.test.js", "unit/a/two.test.js"],
      ["unit/b/one.test.js"],
      ["e2e/one.test.js"],
      ["e2e/two.test.js"],
    ]);
  });

  test("separates unit tests that open files, servers, or processes", async () => {
    const opens = [
      'import { writeFile } from "node:fs/promises";',
      'import { spawnSync } from "node:child_process";',
      'import { startApiServer } from "#apiserver/index.js";',
      "const server = shared(start);",
      "await new Promise((resolve) => setTimeout(resolve, 1));",
      'import { setTimeout as sleep } from "node:timers/promises";',
    ];
    const texts = opens.map((line, index) => [`unit/a/${index}.test.js`, `${LAW}${line}\n`]);
    const computes = {
      "unit/a/8.test.js": `${LAW}setImmediate(done);\n`,
      "unit/a/9.test.js": `${LAW}if (process.env["A"] === "1") run(process.execPath);\n`,
    };
    const groups = await groupsOf({ ...Object.fromEntries(texts), ...computes });
    assert.equal(groups, [opens.map((_, index) => `unit/a/${index}.test.js`), Object.keys(computes)]);
  });

  test("contains integration tests of one folder that only use their own servers", async () => {
    const serves = `${LAW}import { startApiServer } from "#apiserver/index.js";\nconst server = shared(start);\n`;
    const groups = await groupsOf({
      "integration/one.test.js": serves,
      "integration/two.test.js": serves,
      "integration/three.test.js": 'import { spawn } from "node:child_process";\n',
      "integration/a/four.test.js": serves,
      "integration/a/five.test.js": 'import { request } from "../../support/api/api-request.js";\n',
    });
    assert.equal(groups, [
      ["integration/one.test.js", "integration/two.test.js"],
      ["integration/three.test.js"],
      ["integration/a/four.test.js", "integration/a/five.test.js"],
    ]);
  });

  test("excludes files with global side effects, directly or by a helper", async () => {
    const outside = [
      'import { register } from "node:module";',
      'import { spawn } from "node:child_process";',
      "process.env.A = 1;",
      'process.env["A"] = "1";',
      'delete process.env["A"];',
      'process.on("exit", tell);',
      "const { memoryUsage } = process;",
      "globalThis.fetch = fake;",
      "setInterval(() => {}, 1);",
      'import { help } from "./helper.js";',
    ];
    const texts = outside.map((line, index) => [`unit/a/${index}.test.js`, `${LAW}${line}\n`]);
    const helpers = { "unit/a/helper.js": 'export * from "./deep.js";\n', "unit/a/deep.js": "process.exit();\n" };
    const others = {
      "unit/a/computes.test.js": LAW,
      "unit/a/opens.test.js": `${LAW}import { writeFile } from "node:fs/promises";\n`,
    };
    const groups = await groupsOf({ ...others, ...Object.fromEntries(texts), ...helpers });
    assert.equal(
      groups,
      [...Object.keys(others), ...texts.map(([path]) => path)].map((path) => [path]),
    );
  });

  test("is limited in size", async () => {
    const sizesOf = async (folder: string, options = {}) => {
      const names = Array.from({ length: 30 }, (_, index) => [`${folder}/${index}.test.js`, LAW]);
      return (await groupsOf(Object.fromEntries(names), options)).map(({ length }) => length);
    };
    assert.equal(await sizesOf("unit/a"), [12, 12, 6]);
    assert.equal(await sizesOf("integration/a"), [6, 6, 6, 6, 6]);
    assert.equal(await sizesOf("unit/a", { isQuick: false }), [12, 12, 6]);
    assert.equal(await sizesOf("integration/a", { isQuick: false }), [4, 4, 4, 4, 4, 4, 4, 2]);
    assert.equal(new Set(await sizesOf("types", { isQuick: false })), new Set([3]));
    assert.equal(new Set(await sizesOf("golden", { isQuick: false })), new Set([1]));
  });
});

suite("test file in a shared process", (test) => {
  const run = async (fixtures: readonly string[], limits = {}) => {
    const files = fixtures.map((name) => fileURLToPath(new URL(`fixtures/${name}.fixture.js`, import.meta.url)));
    const outcomes = await runFiles(files, limits);
    assert.equal(
      outcomes.map(({ file }) => file),
      files,
    );
    return outcomes;
  };

  test("has its own counts, titles, and skipped tests", async () => {
    const [first, second] = await run(["passes", "disposes-shared"]);
    assert.equal([first?.problem, second?.problem], [undefined, undefined]);
    assert.equal([first?.report.passedTitles, first?.report.skipped.length], [["one", "two"], 1]);
    assert.equal([second?.report.passed, second?.report.skipped], [2, []]);
  });

  test("does not fail for failures of other files", async () => {
    const outcomes = await run(["passes", "fails-an-assertion", "declares-nothing", "disposes-shared"]);
    assert.equal(
      outcomes.map(({ problem }) => problem),
      [undefined, "failed 1 of 2 tests", "declares no test", undefined],
    );
    assert.match(outcomes[1]?.output ?? "", "fails-an-assertion.fixture.ts:5:30");
  });

  test("fails if the process exits before its tests have run", async () => {
    const outcomes = await run(["passes", "exits-early", "disposes-shared"]);
    assert.is(outcomes[0]?.problem, undefined);
    assert.match(outcomes[1]?.problem ?? "", /^left 2 tests unfinished$/);
    assert.is.not(outcomes[2]?.problem, undefined);
  });

  test("fails for an open handle of any file, and for a file that cannot be loaded", async () => {
    const open = await run(["leaves-a-handle-open", "passes"], { exitGraceMs: 300 });
    for (const { problem } of open) assert.match(problem ?? "", "a handle was left open");
    const broken = await run(["passes", "throws-while-loading"]);
    for (const { problem } of broken) assert.is.not(problem, undefined);
  });
});
