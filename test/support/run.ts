// node test/dist/support/run.js FOLDER|FILE... runs every *.test.js below the named folders of test/dist, or of another project's dist;
// with --except LIST without the files and folders that a list in the folder test names.
//
// A file runs in a process of its own, so that a leaked timer, a hang or a crash stays with the file that caused it; but those share one that
// touch nothing outside of what they open themselves. More processes run at once than there are cores, for many wait most of their time.
// A file fails if it fails a test, declares none, leaves one unfinished, or does not exit by itself.
import { fork, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
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
// What a test waits for comes late where much else runs; a wait is only as long as it has to be.
const WAIT_FACTOR = process.env["GEN_OPERATOR_WAIT_FACTOR"] ?? "4";
const IS_REAL = process.env["TEST_API_SERVER"] === "real";
// A test that takes long would keep the other files of its process waiting.
const IS_QUICK = !isThorough && !IS_REAL;
// How many more processes run at once than there are cores. A real API server computes while its test waits.
const BESIDE = 9;
const BESIDE_REAL = 3;
// Most files are over before optimised code pays: less of it, and fewer collections of a small heap, take a fifth less CPU.
// Later versions of V8 have no such budget.
const SHORT_LIVED = [
  "--max-semi-space-size=32",
  ...(process.versions.node.startsWith("20.") ? ["--interrupt-budget=1000000"] : []),
];

// They take minutes: what begins first is not what everything else waits for at the end.
const LONGEST =
  /\/(?:reconciles\/stuck-primaries|life-cycle\/event-loop|writes\/(?:write-loops|late-writes)|unit\/support\/run)\.test\.js$/;
// They take as long where a run is thorough, or on a real API server.
const LONGEST_THERE =
  /\/(?:conformance\/goldens|api-server\/(?:simulate|parse-agreement)|memory\/run-memory|golden\/new-project|types\/hostile-crds|control-plane\/(?:embedded\/(?:updates\/mutated-updates|peer-clients)|kubectl\/kubectl-commands|operate\/metrics))\.test\.js$/;

// They measure how long a process of theirs is blocked or hears nothing of its Lease, which on a busy machine is what other tests do to it.
const ALONE = IS_QUICK
  ? /\/control-plane\/operate\/leader-election\.test\.js$/
  : /\/(?:control-plane\/operate\/leader-election|life-cycle\/event-loop)\.test\.js$/;

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
export async function runFile(file: string, limits: FileLimits = {}): Promise<FileOutcome> {
  const [outcome] = await runFiles([file], limits);
  if (outcome === undefined) throw new Error(`${file} has no outcome`);
  return outcome;
}

/** Runs compiled test files in one process, one after the other. A file fails for what it does itself, or for how the process ends. */
export function runFiles(files: readonly string[], limits: FileLimits = {}): Promise<FileOutcome[]> {
  const { fileTimeoutMs = FILE_TIMEOUT_MS, exitGraceMs = EXIT_GRACE_MS } = limits;
  const startedAt = Date.now();
  const reports = new Map(files.map((file) => [file, NOTHING]));
  const finishedAt = new Map<string, number>();
  let output = "";
  let reason: string | undefined;
  let exitGrace: NodeJS.Timeout | undefined;
  // A file that is ended cannot tidy up, so its temporary files lie in a folder that we remove.
  const temporary = mkdtempSync(join(tmpdir(), "gen-operator-test-file-"));
  const [only = "", ...others] = files;
  const [program, args] = others.length === 0 ? [only, []] : [TOGETHER, files];
  return new Promise((done) => {
    const child: ChildProcess = fork(program, args, {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: ["--no-warnings", ...SHORT_LIVED],
      env: { ...process.env, FORCE_COLOR: "0", TMPDIR: temporary, GEN_OPERATOR_WAIT_FACTOR: WAIT_FACTOR },
    });
    const kill = (why: string) => {
      reason = why;
      // A file that is ended has not printed them itself.
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
    // What it left running would keep its output open.
    child.on("exit", () => endProcessesOf(temporary));
    child.on("close", (code, signal) => {
      clearTimeout(deadline);
      clearTimeout(exitGrace);
      rmSync(temporary, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
      const end = { code, signal, reason };
      const own = files.map((file) => problemOf(reports.get(file) ?? NOTHING, end));
      // The process tells of failed tests by its code, too; the others did not fail by that.
      const isWell = own.every((problem) => problem === undefined);
      const common = isWell && code !== 0 ? (endedBy(end) ?? `exited with code ${code}`) : undefined;
      let since = startedAt;
      const outcomes = files.map((file, index): FileOutcome => {
        const problem = own[index] ?? common;
        const until = finishedAt.get(file) ?? Date.now();
        const durationMs = until - since;
        since = until;
        const report = reports.get(file) ?? NOTHING;
        if (problem === undefined) return { file, report, output, durationMs };
        return { file, report, output: atSources(output), durationMs, problem };
      });
      done(outcomes);
    });
  });
}

/**
 * Ends what a file has left running: its processes have its folder for temporary files in their environment. A process group of its own would do the
 * same on all systems, but makes a session, and Linux shares the processor among sessions: a file with many processes would get too little.
 */
function endProcessesOf(temporary: string): void {
  if (process.platform !== "linux") return;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
      if (variables.includes(`TMPDIR=${temporary}`)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended, or is somebody else's.
    }
  }
}

const TOGETHER = fileURLToPath(new URL("together.js", import.meta.url));
const NOTHING: SuiteReport = { declared: 0, passed: 0, failed: 0, skipped: [], passedTitles: [], failures: [] };

interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why the process was ended; absent if it ended by itself. */
  readonly reason: string | undefined;
}

/** Says what a file did wrong. One that was finished does not answer for the end of the process. */
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

/** Reads a list of folders, and of files without `.test.js`; returns whether it names a file. */
function readList(list: string): (file: string) => boolean {
  const lines = readFileSync(list, "utf8").split("\n");
  const names = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return (file) => names.some((name) => file === `${name}.test.js` || file.startsWith(`${name}/`));
}

/** The compiler leaves behind what it made of sources that were removed or renamed. */
function hasSource(file: string): boolean {
  const path = relative(root, file).replace(/\.js$/, ".ts");
  // The tests of another project are beside what they test, and its sources in src.
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
  // A suite that is asked for and is not there must not look like one that passes.
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
  const atOnce = availableParallelism() + (startsReal ? BESIDE_REAL : BESIDE);
  await Promise.all(Array.from({ length: atOnce }, () => work(waiting)));
  await work(alone.map((file) => [file]));
  return printSummary(outcomes, empty);
}

/**
 * All files, those of every folder spread over the whole: some wait most of their time, and others compute. What shares a process comes first,
 * as it takes the longest, so that at the end no core waits for it; but only files that compute are many, and they fill the cores to the end.
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

// What fails or hangs is told already.
function passedTitlesOf(outcomes: FileOutcome[]): Map<string, string[]> {
  return new Map(
    outcomes
      .filter(({ problem }) => problem === undefined)
      .map(({ file, report }) => [relative(root, file).replace(/\.js$/, ""), report.passedTitles]),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
