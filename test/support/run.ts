// node test/dist/support/run.js FOLDER|FILE... runs each *.test.js file in the given folders of test/dist, or of another project's dist folder.
// --except LIST excludes the files and folders that a list in the test folder names.
//
// Test files run in separate processes, so that a leaked timer, hang, or crash affects only the file that caused it. Files that use only resources
// which they open themselves share a process. More processes run concurrently than there are cores, because many of them are waiting. A test file
// fails if one of its tests fails, if it declares no test or leaves one unfinished, or if it does not exit by itself.
import { fork, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { missingTests, readFeatureTable, readJosdkTable } from "./tables/josdk-table.js";
import { groupFiles, MOST_THAT_WAIT } from "./file-groups.js";
import { lendControlPlanes, LENDER } from "./machine/lend-control-planes.js";
import { RUN_FOLDER } from "./once-in-run.js";
import { isAdded, isThorough } from "./runs.js";
import { atSources } from "./source-positions.js";
import { createTemporaryFolder } from "./temporary-folder.js";
import type { SuiteReport } from "./suite.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const FILE_TIMEOUT_MS = Number(process.env["TEST_FILE_TIMEOUT_MS"] ?? 900_000);
const EXIT_GRACE_MS = 30_000;
// Timeouts are extended on a busy machine; waiting ends as soon as the condition is true.
const WAIT_FACTOR = process.env["GEN_OPERATOR_WAIT_FACTOR"] ?? "4";
const IS_REAL = process.env["TEST_API_SERVER"] === "real";
// Slow tests would delay the other files of their process.
const IS_QUICK = !isThorough && !IS_REAL;
// The number of concurrent processes in excess of the cores. A real API server uses the CPU while its test is waiting.
const BESIDE = 9;
const BESIDE_REAL = 3;
// Most files finish before optimized code pays off: delaying it, and collecting a small heap less often, uses a fifth less CPU time. Later versions
// of V8 have no interrupt budget.
const SHORT_LIVED = [
  "--max-semi-space-size=32",
  ...(process.versions.node.startsWith("20.") ? ["--interrupt-budget=1000000"] : []),
];

// These files take minutes, so they are started first and do not delay the end of the run.
const LONGEST =
  /\/(?:reconciles\/stuck-primaries|life-cycle\/event-loop|writes\/(?:write-loops|late-writes)|unit\/support\/run)\.test\.js$/;
// These files take minutes in a thorough run, or with a real API server.
const LONGEST_THERE =
  /\/(?:conformance\/goldens|api-server\/(?:simulate|parse-agreement)|memory\/run-memory|golden\/new-project|types\/hostile-crds|control-plane\/(?:embedded\/(?:updates\/mutated-updates|peer-clients)|kubectl\/kubectl-commands|operate\/metrics))\.test\.js$/;

// These files measure how long their processes are blocked, or whether they renew a Lease in time, which other tests on a busy machine would affect.
const ALONE = IS_QUICK
  ? /\/control-plane\/operate\/leader-election\.test\.js$/
  : /\/(?:control-plane\/operate\/leader-election|life-cycle\/event-loop)\.test\.js$/;

/** The result of a test file. */
export interface FileOutcome {
  file: string;
  report: SuiteReport;
  /** Why the file as a whole failed; undefined if it did not. */
  problem?: string;
  output: string;
  durationMs: number;
}

/** The time limits of a test file. */
export interface FileLimits {
  fileTimeoutMs?: number;
  /** The time from the end of its last test and the disposal of shared resources until the process exits. */
  exitGraceMs?: number;
  /** Environment variables besides those of this process. */
  env?: NodeJS.ProcessEnv;
}

/** Runs a compiled test file in a separate process. */
export async function runFile(file: string, limits: FileLimits = {}): Promise<FileOutcome> {
  const [outcome] = await runFiles([file], limits);
  if (outcome === undefined) throw new Error(`${file} has no outcome`);
  return outcome;
}

/** Runs compiled test files one after the other in one process. A file fails because of its own errors, or because of how the process exits. */
export function runFiles(files: readonly string[], limits: FileLimits = {}): Promise<FileOutcome[]> {
  const { fileTimeoutMs = FILE_TIMEOUT_MS, exitGraceMs = EXIT_GRACE_MS, env } = limits;
  const startedAt = Date.now();
  const reports = new Map(files.map((file) => [file, NOTHING]));
  const finishedAt = new Map<string, number>();
  let output = "";
  let reason: string | undefined;
  let exitGrace: NodeJS.Timeout | undefined;
  // A killed process cannot clean up, so its temporary files are in a folder that we remove.
  const temporary = mkdtempSync(join(tmpdir(), "gen-operator-test-file-"));
  running.add(temporary);
  const [only = "", ...others] = files;
  const [program, args] = others.length === 0 ? [only, []] : [TOGETHER, files];
  return new Promise((done) => {
    const child: ChildProcess = fork(program, args, {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: ["--no-warnings", ...SHORT_LIVED],
      env: { ...process.env, FORCE_COLOR: "0", TMPDIR: temporary, GEN_OPERATOR_WAIT_FACTOR: WAIT_FACTOR, ...env },
    });
    const kill = (why: string) => {
      reason = why;
      // A killed process has not printed its failures.
      const failures = [...reports.values()].flatMap((report) => report.failures);
      output += failures.map((failure) => `\nFAIL  ${failure}`).join("");
      child.kill("SIGKILL");
    };
    const deadline = setTimeout(() => kill(`did not finish within ${fileTimeoutMs} ms`), fileTimeoutMs);
    child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.on("message", (message) => {
      const { file = only, ...report } = message as SuiteReport;
      reports.set(file, report);
      if (report.finished === undefined || finishedAt.has(file)) return;
      finishedAt.set(file, Date.now());
      if (finishedAt.size < files.length) return;
      exitGrace = setTimeout(
        () => kill(`did not exit within ${exitGraceMs} ms after its last test: a handle was left open`),
        exitGraceMs,
      );
    });
    // Processes that it left running would keep its output open.
    child.on("exit", () => endProcessesOf([temporary]));
    child.on("close", (code, signal) => {
      clearTimeout(deadline);
      clearTimeout(exitGrace);
      removeFolder(temporary);
      running.delete(temporary);
      const end = { code, signal, reason };
      const own = files.map((file) => problemOf(reports.get(file) ?? NOTHING, end));
      // The exit code also reports failed tests, which do not affect the other files.
      const isWell = own.every((problem) => problem === undefined);
      const common = isWell && code !== 0 ? (endedBy(end) ?? `exited with code ${code}`) : undefined;
      const outcomes = files.map((file, index): FileOutcome => {
        const problem = own[index] ?? common;
        const until = finishedAt.get(file) ?? Date.now();
        // A file whose tests are all skipped reports at the end of the process.
        const durationMs = until - Math.max(startedAt, ...[...finishedAt.values()].filter((time) => time < until));
        const report = reports.get(file) ?? NOTHING;
        if (problem === undefined) return { file, report, output, durationMs };
        return { file, report, output: atSources(output), durationMs, problem };
      });
      done(outcomes);
    });
  });
}

/** The folders for temporary files of the files that are running. */
const running = new Set<string>();

/**
 * Kills the processes that files have left running, which are identified by the folder for temporary files in their environment. A separate process
 * group would do the same on all systems, but creates a session, and Linux distributes CPU time among sessions: a file with many processes would get
 * too little.
 */
function endProcessesOf(folders: readonly string[]): void {
  if (process.platform !== "linux") return;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
      if (folders.some((folder) => variables.includes(`TMPDIR=${folder}`))) process.kill(Number(pid), "SIGKILL");
    } catch {
      // The process has exited, or belongs to another user.
    }
  }
}

function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** Ends the running files when the run is interrupted, and removes their folders and those of the run. */
function endAtSignals(folders: readonly string[]): void {
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
    process.once(signal, () => {
      endProcessesOf([...running]);
      for (const folder of [...running, ...folders]) removeFolder(folder);
      process.exit(code);
    });
}

const TOGETHER = fileURLToPath(new URL("together.js", import.meta.url));
const NOTHING: SuiteReport = { declared: 0, passed: 0, failed: 0, skipped: [], passedTitles: [], failures: [] };

interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why the process was killed; undefined if it exited by itself. */
  readonly reason: string | undefined;
}

/** Returns why a file failed. A file that has finished is not blamed for the exit of the process. */
function problemOf(report: SuiteReport, end: ProcessEnd): string | undefined {
  const ended = report.finished === undefined && end.code !== 0 ? endedBy(end) : undefined;
  if (ended !== undefined) return report.running === undefined ? ended : `${ended}, in "${report.running}"`;
  if (report.declared + report.skipped.length === 0) return "declares no test";
  if (report.passed + report.failed < report.declared)
    return `left ${report.declared - report.passed - report.failed} tests unfinished`;
  if (report.failed > 0) return `failed ${report.failed} of ${report.declared} tests`;
  return undefined;
}

function endedBy({ reason, signal }: ProcessEnd): string | undefined {
  return reason ?? (signal ? `ended by ${signal}` : undefined);
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

/** Reads a list of folders, and of files without `.test.js`. Returns a predicate that matches the listed files. */
function readList(list: string): (file: string) => boolean {
  const lines = readFileSync(list, "utf8").split("\n");
  const names = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return (file) => names.some((name) => file === `${name}.test.js` || file.startsWith(`${name}/`));
}

/** Returns whether the source exists; the compiler does not delete the output of removed or renamed sources. */
function hasSource(file: string): boolean {
  const path = relative(root, file).replace(/\.js$/, ".ts");
  // The tests of another project are next to the code that they test, and its sources are in src.
  const source = path.startsWith("..") ? path.replace(/(.*)\bdist\b/, "$1src") : join("..", path);
  return existsSync(join(root, source));
}

async function main(args: string[]): Promise<number> {
  const { values, positionals: paths } = parseArgs({
    args,
    options: { except: { type: "string" } },
    allowPositionals: true,
  });
  if (paths.length === 0) {
    console.error("node test/dist/support/run.js FOLDER|FILE... [--except LIST]");
    return 2;
  }
  const isLeft = values.except === undefined ? () => false : readList(join(root, "..", values.except));
  const found = paths.map((path) => ({
    path,
    files: testFiles(resolve(root, path)).filter((file) => !isLeft(relative(root, file))),
  }));
  // A missing suite must not be reported as passed.
  const empty = found.filter(({ files }) => files.length === 0).map(({ path }) => path);
  const outcomes: FileOutcome[] = [];
  const all = found.flatMap(({ files }) => files);
  const alone = all.filter((file) => ALONE.test(file));
  const startsReal = IS_REAL || paths.some((path) => path.startsWith("control-plane"));
  const isLongest = (file: string) => LONGEST.test(file) || ((isThorough || startsReal) && LONGEST_THERE.test(file));
  const longest = all.filter((file) => isLongest(file) && !alone.includes(file));
  const others = found.map(({ files }) => files.filter((file) => !isLongest(file) && !ALONE.test(file)));
  const groups = inTurns(others.map((files) => groupFiles(files, root, IS_QUICK)));
  const waiting = [...longest.map((file) => [file]), ...groups];
  const work = async (groups: string[][]) => {
    for (let files = groups.shift(); files !== undefined; files = groups.shift()) {
      const ended = await runFiles(files);
      outcomes.push(...ended);
      for (const outcome of ended) printOutcome(outcome);
    }
  };
  await using folder = await createTemporaryFolder();
  process.env[RUN_FOLDER] = folder.path;
  await using lender = startsReal ? await lendControlPlanes() : undefined;
  if (lender !== undefined) process.env[LENDER] = lender.path;
  endAtSignals([folder.path, ...(lender === undefined ? [] : [dirname(lender.path)])]);
  const atOnce = availableParallelism() + (startsReal ? BESIDE_REAL : BESIDE);
  await Promise.all(Array.from({ length: atOnce }, () => work(waiting)));
  await work(alone.map((file) => [file]));
  return printSummary(outcomes, empty);
}

/**
 * Interleaves the groups of all folders, because some folders mainly wait and others compute. Within a folder, groups with several files start first
 * because they take the longest, so that no core waits for them at the end. The largest groups, which only compute, start last and keep all cores
 * busy until the end.
 */
function inTurns(folders: readonly string[][][]): string[][] {
  const rank = ({ length }: string[]) => (length > MOST_THAT_WAIT ? 0 : -length);
  return folders
    .map((groups) => [...groups].sort((one, other) => rank(one) - rank(other)))
    .flatMap((groups) => groups.map((files, index) => ({ files, at: index / groups.length })))
    .sort((one, other) => one.at - other.at)
    .map(({ files }) => files);
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
  const missing = isAdded ? [] : missingTests([...readJosdkTable(), ...readFeatureTable()], passedTitlesOf(outcomes));
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

// Failed and hanging files have already been reported.
function passedTitlesOf(outcomes: FileOutcome[]): Map<string, string[]> {
  return new Map(
    outcomes
      .filter(({ problem }) => problem === undefined)
      .map(({ file, report }) => [relative(root, file).replace(/\.js$/, ""), report.passedTitles]),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
