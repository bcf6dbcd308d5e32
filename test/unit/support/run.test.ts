import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runFile, type FileOutcome } from "../../support/run.js";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

suite("test runner", (test) => {
  const failures: [fixture: string, problem: RegExp, what: string][] = [
    ["fails-an-assertion", /^failed 1 of 2 tests$/, "a failed assertion"],
    ["throws-while-loading", /^(declares no test|left 1 tests unfinished)$/, "a file that throws while it is loaded"],
    [
      "throws-in-declaration",
      /^(declares no test|left 1 tests unfinished)$/,
      "a suite that throws while it is declared",
    ],
    ["throws-in-set-up", /^failed 1 of 1 tests$/, "a set-up that throws"],
    ["throws-in-tear-down", /^failed 1 of 1 tests$/, "a tear-down that throws"],
    ["throws-in-shared-tear-down", /^exited with code 1$/, "a tear-down of a shared resource that throws"],
    ["declares-nothing", /^declares no test$/, "a suite without tests"],
    ["is-empty", /^declares no test$/, "a file without a suite"],
    ["forgets-to-run", /^declares no test$/, "a suite that is not run"],
    ["passes-after-a-failure", /^failed 1 of 2 tests$/, "a failure that a later suite outshines"],
    ["hangs", /^failed 1 of 1 tests$/, "a test that never ends"],
    ["exits-early", /^left 2 tests unfinished$/, "a test that ends the process with code 0"],
    ["exits-while-disposing", /^exited with code 1$/, "a tear-down of a shared resource that never ends"],
    ["exits-at-the-end", /^exited with code 1$/, "a rejection that nobody waits for"],
  ];
  for (const [fixture, problem, what] of failures) {
    test(`${what} fails the file`, async () => {
      const outcome = await run(fixture);
      assert.match(outcome.problem ?? "no problem", problem);
    });
  }

  test("a test that blocks the thread fails the file", async () => {
    const { problem } = await runFor(await someTime(), "blocks");
    assert.match(problem ?? "no problem", /^did not finish within \d+ ms, in "never gives up the thread"$/);
  });

  test("an open handle fails the file", async () => {
    const { problem } = await runFile(fixtureFile("leaves-a-handle-open"), { exitGraceMs: 300 });
    assert.is(problem, "did not exit within 300 ms after its last test: a handle was left open");
  });

  test("a process that a failed test leaves running is ended with its file", async () => {
    const { report, problem } = await run("leaves-a-process");
    assert.match(problem ?? "no problem", /^failed 1 of 1 tests$|^did not exit/);
    const pid = Number(/pid (\d+)/.exec(report.failures.join())?.[1]);
    await waitFor("it is gone", () => !isAlive(pid));
  });

  test("a file that passes is reported with its counts", async () => {
    const { report, problem } = await run("passes");
    assert.is(problem, undefined);
    assert.equal(report, {
      declared: 2,
      passed: 2,
      failed: 0,
      skipped: ["passes › three: shows that a skipped test is counted"],
      passedTitles: ["one", "two"],
      failures: [],
      finished: true,
    });
  });

  test("what is shared may take longer to dispose than a file may take to exit", async () => {
    const { report, problem } = await runFile(fixtureFile("disposes-slowly"), { exitGraceMs: 2_500 });
    assert.is(problem, undefined);
    assert.is(report.passed, 1);
  });

  test("what is shared and never disposed fails the file, which says so", async () => {
    const { problem } = await runFor(await someTime(), "never-disposes");
    assert.match(problem ?? "no problem", /^did not finish within \d+ ms, in "disposing of what the tests share"$/);
  });

  test("a shared resource is created once and disposed after the last test", async () => {
    const { report, problem } = await run("disposes-shared");
    assert.is(problem, undefined);
    assert.is(report.passed, 2);
  });

  test("a file that is ended is reported with the failures before", async () => {
    const { output, problem } = await runFor(await someTime(), "hangs-after-a-failure");
    assert.match(problem ?? "no problem", /^did not finish within \d+ ms, in "waits for ever"$/);
    assert.match(output, "FAIL  fails: the reason");
  });

  test("temporary files of a file are gone afterwards, however it ended", async () => {
    const { output } = await run("leaves-a-file");
    const folder = /folder: (.*)/.exec(output)?.[1];
    assert.ok(folder);
    assert.not.ok(existsSync(folder));
  });

  test("a folder without tests fails the run, and the others still run", async () => {
    const { code, output } = await runAll("unit/support/suite.test.js", "no-such-folder");
    assert.is(code, 1);
    assert.match(output, "failed: no-such-folder: no test files");
    assert.ok(output.endsWith("1 passed, 1 failed\n"));
  });

  test("what is skipped is named with its reason, and counted in the last line", async () => {
    const { code, output } = await runAll("unit/support/fixtures/passes.fixture.js");
    assert.is(code, 0);
    const named = "unit/support/fixtures/passes.fixture › passes › three: shows that a skipped test is counted";
    assert.ok(output.endsWith(`skipped: ${named}\n2 passed, 0 failed, 1 skipped\n`), output);
  });

  test("a run of nothing fails", async () => {
    assert.is((await runAll()).code, 2);
  });

  test("the output of a file is kept, so that a failure can be printed with it", async () => {
    const { output } = await run("throws-in-set-up");
    assert.match(output, "set-up of the test failed");
  });

  test("a failure is reported at its line in the source", async () => {
    const { output } = await run("fails-an-assertion");
    assert.match(output, `${repositoryRoot}/test/unit/support/fixtures/fails-an-assertion.fixture.ts:5:30`);
    assert.not.match(output, "fixture.js");
  });
});

function runAll(...paths: string[]): Promise<{ code: number | null; output: string }> {
  const runner = fileURLToPath(new URL("../../support/run.js", import.meta.url));
  return new Promise((done) => {
    const child = spawn(process.execPath, [runner, ...paths], { stdio: ["ignore", "pipe", "ignore"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("close", (code) => done({ code, output }));
  });
}

const fixtureFile = (fixture: string) => fileURLToPath(new URL(`fixtures/${fixture}.fixture.js`, import.meta.url));

function run(fixture: string): Promise<FileOutcome> {
  return runFile(fixtureFile(fixture));
}

function runFor(fileTimeoutMs: number, fixture: string): Promise<FileOutcome> {
  return runFile(fixtureFile(fixture), { fileTimeoutMs });
}

/** A time in which a file gets to its last test, however busy the machine is. */
async function someTime(): Promise<number> {
  const { durationMs } = await run("passes");
  return 5 * durationMs;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
