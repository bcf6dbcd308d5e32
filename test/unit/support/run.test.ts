import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runFile, type FileOutcome } from "../../support/run.js";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

suite("test runner", (test) => {
  const failures: [fixture: string, problem: RegExp, what: string][] = [
    ["fails-an-assertion", /^failed 1 of 2 tests$/, "a failed assertion"],
    ["throws-while-loading", /^(declares no test|left 1 tests unfinished)$/, "an error while loading"],
    ["throws-in-declaration", /^(declares no test|left 1 tests unfinished)$/, "an error in a suite declaration"],
    ["throws-in-set-up", /^failed 1 of 1 tests$/, "an error in set-up"],
    ["throws-in-tear-down", /^failed 1 of 1 tests$/, "an error in tear-down"],
    ["throws-in-shared-tear-down", /^exited with code 1$/, "an error in the tear-down of a shared resource"],
    ["declares-nothing", /^declares no test$/, "a suite without tests"],
    ["is-empty", /^declares no test$/, "no suite"],
    ["forgets-to-run", /^declares no test$/, "a suite that is not run"],
    ["passes-after-a-failure", /^failed 1 of 2 tests$/, "a failure before a suite that passes"],
    ["hangs", /^failed 1 of 1 tests$/, "a test that never ends"],
    ["exits-early", /^left 2 tests unfinished$/, "a test that exits with code 0"],
    ["exits-while-disposing", /^exited with code 1$/, "a tear-down of a shared resource that never ends"],
    ["exits-at-the-end", /^exited with code 1$/, "an unhandled rejection"],
  ];
  for (const [fixture, problem, what] of failures) {
    test(`fails a file with ${what}`, async () => {
      const outcome = await run(fixture);
      assert.match(outcome.problem ?? "no problem", problem);
    });
  }

  test("fails a file with a test that blocks the thread", async () => {
    const { problem } = await runFor(await someTime(), "blocks");
    assert.match(problem ?? "no problem", /^did not finish within \d+ ms, in "never gives up the thread"$/);
  });

  test("fails a file with an open handle", async () => {
    const { problem } = await runFile(fixtureFile("leaves-a-handle-open"), { exitGraceMs: 300 });
    assert.is(problem, "did not exit within 300 ms after its last test: a handle was left open");
  });

  test("kills a process that a failed test leaves running", async () => {
    const { report, problem } = await run("leaves-a-process");
    assert.match(problem ?? "no problem", /^failed 1 of 1 tests$|^did not exit/);
    const pid = Number(/pid (\d+)/.exec(report.failures.join())?.[1]);
    await waitFor("it is gone", () => !isAlive(pid));
  });

  if (process.platform === "linux")
    for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 }))
      test(`ends the processes of all files and removes their folders on ${signal}`, async () => {
        await using folder = await createTemporaryFolder();
        const env = { ...process.env, TMPDIR: folder.path, TEST_MARK: folder.path };
        const child = spawn(process.execPath, [RUNNER, fixtureFile("waits-for-a-process")], { stdio: "ignore", env });
        const ended = once(child, "exit");
        const marked = () => processesWith(`TEST_MARK=${folder.path}`);
        await waitFor("the runner, the file and its process run", () => marked().length === 3);
        child.kill(signal as NodeJS.Signals);
        assert.equal(await ended, [code, null]);
        await waitFor("all processes are gone", () => marked().length === 0);
        assert.equal(readdirSync(folder.path), []);
      });
  else test.skip("ends the processes of all files at a signal", "there is no /proc");

  test("reports a passing file with its counts", async () => {
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

  test("allows more time for disposing shared resources than for exiting", async () => {
    const { report, problem } = await runFile(fixtureFile("disposes-slowly"), { exitGraceMs: 2_500 });
    assert.is(problem, undefined);
    assert.is(report.passed, 1);
  });

  test("fails a file whose shared resource is never disposed, and says so", async () => {
    const { problem } = await runFor(await someTime(), "never-disposes");
    assert.match(problem ?? "no problem", /^did not finish within \d+ ms, in "disposing of what the tests share"$/);
  });

  test("creates a shared resource once and disposes it after the last test", async () => {
    const { report, problem, output } = await run("disposes-shared");
    assert.is(problem, undefined);
    assert.is(report.passed, 2);
    assert.equal(output.match(/^(?:created|first|second|disposed)\b/gm), ["created", "first", "second", "disposed"]);
  });

  test("reports earlier failures of a file that times out", async () => {
    const { output, problem } = await runFor(await someTime(), "hangs-after-a-failure");
    assert.match(problem ?? "no problem", /^did not finish within \d+ ms, in "waits for ever"$/);
    assert.match(output, "FAIL  fails: the reason");
  });

  for (const [end, expected] of [
    ["passes", undefined],
    ["fails", "failed 1 of 1 tests"],
    ["exits", "left 1 tests unfinished"],
    ["is killed", 'ended by SIGKILL, in "ends after it has created a file"'],
  ] as const)
    test(`deletes the temporary files of a process that ${end}`, async () => {
      process.env["FIXTURE_END"] = end;
      const { output, problem } = await run("leaves-a-file").finally(() => delete process.env["FIXTURE_END"]);
      assert.is(problem, expected);
      const folder = /folder: (.*)/.exec(output)?.[1];
      assert.ok(folder);
      assert.not.ok(existsSync(folder));
    });

  test("fails for a folder without tests, and runs the others", async () => {
    const { code, output } = await runAll("unit/support/suite.test.js", "no-such-folder");
    assert.is(code, 1);
    assert.match(output, "failed: no-such-folder: no test files");
    assert.ok(output.endsWith("1 passed, 1 failed\n"));
  });

  test("lists skipped tests with their reason, and counts them in the last line", async () => {
    const { code, output } = await runAll("unit/support/fixtures/passes.fixture.js");
    assert.is(code, 0);
    const named = "unit/support/fixtures/passes.fixture › passes › three: shows that a skipped test is counted";
    assert.ok(output.endsWith(`skipped: ${named}\n2 passed, 0 failed, 1 skipped\n`), output);
  });

  test("fails with exit code 2 without tests", async () => {
    assert.is((await runAll()).code, 2);
  });

  test("keeps the output of a failed file", async () => {
    const { output } = await run("throws-in-set-up");
    assert.match(output, "set-up of the test failed");
  });

  test("reports a failure at its line in the source", async () => {
    const { output } = await run("fails-an-assertion");
    assert.match(output, `${repositoryRoot}/test/unit/support/fixtures/fails-an-assertion.fixture.ts:5:30`);
    assert.not.match(output, "fixture.js");
  });
});

const RUNNER = fileURLToPath(new URL("../../support/run.js", import.meta.url));

/** Returns the ids of the processes that have a variable in their environment. */
function processesWith(variable: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(variable);
    } catch {
      // It has exited, or belongs to another user.
      return false;
    }
  });
}

function runAll(...paths: string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((done) => {
    const child = spawn(process.execPath, [RUNNER, ...paths], { stdio: ["ignore", "pipe", "ignore"] });
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
