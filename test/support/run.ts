// node test/dist/support/run.js FOLDER|FILE... runs every *.test.js below the named folders of test/dist, or of another project's dist.
//
// Each file runs in a process of its own, so that a leaked timer, a hang or a crash stays with the file that caused it; five more at
// once than there are cores, for many wait most of their time. A file fails if it fails a test, declares none, leaves one unfinished,
// or does not exit by itself.
import { fork, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { missingTests, readFeatureTable, readJosdkTable } from "./josdk-table.js";
import { atSources } from "./source-positions.js";
import type { SuiteReport } from "./suite.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const FILE_TIMEOUT_MS = Number(process.env["TEST_FILE_TIMEOUT_MS"] ?? 900_000);
const EXIT_GRACE_MS = 30_000;
// What a test waits for comes late where much else runs; a wait is only as long as it has to be.
const WAIT_FACTOR = process.env["GEN_OPERATOR_WAIT_FACTOR"] ?? "4";
// Most files are over before optimised code pays: less of it, and fewer collections of a small heap, take a fifth less CPU.
// Later versions of V8 have no such budget.
const SHORT_LIVED = [
  "--max-semi-space-size=32",
  ...(process.versions.node.startsWith("20.") ? ["--interrupt-budget=1000000"] : []),
];

/** What became of one test file. */
export interface FileOutcome {
  file: string;
  report: SuiteReport;
  /** Why the file as a whole failed; absent if it did not. */
  problem?: string;
  output: string;
  durationMs: number;
}

/** How long a test file may take. */
export interface FileLimits {
  fileTimeoutMs?: number;
  /** From the end of its last test, and of the disposal of what the tests share, until the process has ended. */
  exitGraceMs?: number;
}

/** Runs one compiled test file in a process of its own. */
export function runFile(file: string, limits: FileLimits = {}): Promise<FileOutcome> {
  const { fileTimeoutMs = FILE_TIMEOUT_MS, exitGraceMs = EXIT_GRACE_MS } = limits;
  const startedAt = Date.now();
  let report: SuiteReport = { declared: 0, passed: 0, failed: 0, skipped: [], passedTitles: [], failures: [] };
  let output = "";
  let problem: string | undefined;
  let exitGrace: NodeJS.Timeout | undefined;
  // A file that is ended cannot tidy up, so its temporary files lie in a folder that we remove.
  const temporary = mkdtempSync(join(tmpdir(), "gen-operator-test-file-"));
  return new Promise((done) => {
    const child: ChildProcess = fork(file, [], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: ["--no-warnings", ...SHORT_LIVED],
      env: { ...process.env, FORCE_COLOR: "0", TMPDIR: temporary, GEN_OPERATOR_WAIT_FACTOR: WAIT_FACTOR },
    });
    const kill = (reason: string) => {
      problem = report.running === undefined ? reason : `${reason}, in "${report.running}"`;
      // A file that is ended has not printed them itself.
      output += report.failures.map((failure) => `\nFAIL  ${failure}`).join("");
      child.kill("SIGKILL");
    };
    const deadline = setTimeout(() => kill(`did not finish within ${fileTimeoutMs} ms`), fileTimeoutMs);
    child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.on("message", (message) => {
      report = message as SuiteReport;
      if (report.finished === undefined) return;
      exitGrace ??= setTimeout(
        () => kill(`did not exit within ${exitGraceMs} ms after its last test: a handle was left open`),
        exitGraceMs,
      );
    });
    child.on("close", (code, signal) => {
      clearTimeout(deadline);
      clearTimeout(exitGrace);
      rmSync(temporary, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
      problem ??= problemOf(report, code, signal);
      const durationMs = Date.now() - startedAt;
      if (problem === undefined) done({ file, report, output, durationMs });
      else done({ file, report, output: atSources(output), durationMs, problem });
    });
  });
}

function problemOf(report: SuiteReport, code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal) return `ended by ${signal}`;
  if (report.declared + report.skipped.length === 0) return "declares no test";
  if (report.passed + report.failed < report.declared)
    return `left ${report.declared - report.passed - report.failed} tests unfinished`;
  if (report.failed > 0) return `failed ${report.failed} of ${report.declared} tests`;
  if (code !== 0) return `exited with code ${code}`;
  return undefined;
}

function testFiles(path: string): string[] {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.js"))
    .map((name) => join(path, name))
    .filter(hasSource)
    .sort();
}

/** The compiler leaves behind what it made of sources that were removed or renamed. */
function hasSource(file: string): boolean {
  const path = relative(root, file).replace(/\.js$/, ".ts");
  // The tests of another project are beside what they test, and its sources in src.
  const source = path.startsWith("..") ? path.replace(/(.*)\bdist\b/, "$1src") : join("..", path);
  return existsSync(join(root, source));
}

async function main(paths: string[]): Promise<number> {
  if (paths.length === 0) {
    console.error("node test/dist/support/run.js FOLDER|FILE...");
    return 2;
  }
  const found = paths.map((path) => ({ path, files: testFiles(resolve(root, path)) }));
  // A suite that is asked for and is not there must not look like one that passes.
  const empty = found.filter(({ files }) => files.length === 0).map(({ path }) => path);
  const outcomes: FileOutcome[] = [];
  const waiting = inTurns(found.map(({ files }) => files));
  const worker = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const outcome = await runFile(file);
      outcomes.push(outcome);
      printOutcome(outcome);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() + 5 }, worker));
  return printSummary(outcomes, empty);
}

/** All files, those of every folder spread over the whole: some wait most of their time, and others compute. */
function inTurns(folders: readonly string[][]): string[] {
  return folders
    .flatMap((files) => files.map((file, index) => ({ file, at: (index + 0.5) / files.length })))
    .sort((one, other) => one.at - other.at)
    .map(({ file }) => file);
}

function printOutcome({ file, report, problem, output, durationMs }: FileOutcome): void {
  const name = relative(root, file).replace(/\.js$/, "");
  const seconds = (durationMs / 1000).toFixed(1);
  if (problem === undefined) {
    const skipped = report.skipped.length > 0 ? `, ${report.skipped.length} skipped` : "";
    console.log(`ok    ${name}  ${report.passed} passed${skipped}  ${seconds} s`);
  } else {
    console.log(`${output}\nFAIL  ${name}: ${problem}  ${seconds} s`);
  }
}

function printSummary(outcomes: FileOutcome[], empty: string[]): number {
  const missing = missingTests([...readJosdkTable(), ...readFeatureTable()], passedTitlesOf(outcomes));
  let passed = 0;
  let failed = empty.length + missing.length;
  for (const { report, problem } of outcomes) {
    passed += report.passed;
    // A file that failed as a whole counts as at least one failure.
    failed += problem === undefined ? 0 : Math.max(1, report.failed);
  }
  const skipped = outcomes.flatMap(({ file, report }) =>
    report.skipped.map((test) => `${relative(root, file).replace(/\.js$/, "")} › ${test}`),
  );
  for (const line of skipped) console.log(`skipped: ${line}`);
  const failures = outcomes.filter(({ problem }) => problem !== undefined);
  for (const { file, problem } of failures) console.log(`failed: ${relative(root, file)}: ${problem}`);
  for (const line of missing) console.log(`failed: ${line}`);
  for (const path of empty) console.log(`failed: ${path}: no test files`);
  console.log(`${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ""}`);
  return failed === 0 ? 0 : 1;
}

// What fails or hangs is told already.
function passedTitlesOf(outcomes: FileOutcome[]): Map<string, string[]> {
  return new Map(
    outcomes
      .filter(({ problem }) => problem === undefined)
      .map(({ file, report }) => [relative(root, file).replace(/\.js$/, ""), report.passedTitles]),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
