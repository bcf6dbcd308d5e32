// The only file that imports uvu. uvu exits with 0 if a `before` or `after.each` hook throws or if `.run()` is not called, and it has no timeouts.
// This wrapper therefore offers no hooks (use disposables with `await using` for setup), runs the suite itself, adds timeouts, and reports the
// declared tests and their results to run.ts.
import { exec, suite as uvuSuite } from "uvu";
import { isAdded, isThorough, ONLY_THOROUGH } from "./runs.js";

export * as assert from "./assert.js";

/** The report of a test file to the runner; the counts are numbers of tests. */
export interface SuiteReport {
  /** Undefined if it is the only test file of the process. */
  file?: string;
  declared: number;
  passed: number;
  failed: number;
  /** The titles of skipped tests, with the reasons. */
  skipped: string[];
  /** The titles of the tests that passed. */
  passedTitles: string[];
  /** The titles and messages of failures, in case the process is killed before it prints them. */
  failures: string[];
  /** The title of the current test, or the activity after the last one. */
  running?: string;
  /** Set after all tests have run and shared resources have been disposed. */
  finished?: true;
}

interface DeclareTestFunction {
  (title: string, body: () => unknown, options?: { timeoutMs?: number }): void;
}

/** Declares a test. Its title states an invariant in the present tense. */
export interface DeclareTest extends DeclareTestFunction {
  /** Declares a test that is skipped; the run reports it with the reason. */
  skip(title: string, reason: string): void;
  /** Declares a test that runs only in thorough runs; `.ci/run` lists its file among those to run thoroughly. */
  thorough: DeclareTestFunction;
}

const DEFAULT_TIMEOUT_MS = 20_000;
const WAIT_FACTOR = Number(process.env["GEN_OPERATOR_WAIT_FACTOR"] ?? 1);
const reports: SuiteReport[] = [];
let current: SuiteReport | undefined;

function beginReport(file: Pick<SuiteReport, "file"> = {}): SuiteReport {
  const report = { declared: 0, passed: 0, failed: 0, skipped: [], passedTitles: [], failures: [], ...file };
  reports.push(report);
  return report;
}

/** Assigns the suites that follow to a file that shares the process with others. */
export function beginFile(file: string): void {
  current = beginReport({ file });
}

/** Runs the declared suites if several files share the process. */
export async function runDeclared(): Promise<void> {
  // Files without tests have no last test that would finish them.
  for (const report of reports.filter(({ declared }) => declared === 0)) await finish(report);
  await exec();
}

/** Declares and runs a suite. There are no hooks; use `await using` for setup. */
export function suite(name: string, declare: (test: DeclareTest) => void): void {
  const uvuTest = uvuSuite(name);
  const report = (current ??= beginReport());
  const declareOne: DeclareTestFunction = (title, body, { timeoutMs = DEFAULT_TIMEOUT_MS } = {}) => {
    report.declared++;
    uvuTest(title, () => counted(report, title, () => failAfter(timeoutMs * WAIT_FACTOR, title, body)));
  };
  const skip: DeclareTest["skip"] = (title, reason) => {
    report.skipped.push(`${name} › ${title}: ${reason}`);
  };
  const thorough: DeclareTest["thorough"] = (title, ...rest) =>
    isThorough ? declareOne(title, ...rest) : skip(title, ONLY_THOROUGH);
  const declarePlain: DeclareTestFunction = (...test) => {
    if (!isAdded) declareOne(...test);
  };
  const declareTest: DeclareTest = Object.assign(declarePlain, { skip, thorough });
  declare(declareTest);
  uvuTest.run();
}

const sharedResources: (AsyncDisposable & { forget(): void })[] = [];

/**
 * Returns a function that creates a resource on the first call, and returns the same one on later calls.
 *
 * Use it for resources that are too slow to create for each test. The resource is disposed after the last test of the file.
 */
export function shared<T extends AsyncDisposable>(create: () => Promise<T>): () => Promise<T> {
  let created: Promise<T> | undefined;
  const createOnce = async () => {
    const resource = await create();
    // The next file of the process creates shared resources of helpers again.
    const forget = () => (created = undefined);
    sharedResources.push({ forget, [Symbol.asyncDispose]: () => resource[Symbol.asyncDispose]() });
    return resource;
  };
  return () => (created ??= createOnce());
}

/** An error while disposing fails the file, because the unhandled rejection ends the process. */
async function disposeSharedResources(): Promise<void> {
  for (let last = sharedResources.pop(); last !== undefined; last = sharedResources.pop()) {
    last.forget();
    await last[Symbol.asyncDispose]();
  }
}

/** Disposing shared resources may take long, for example for a folder with thousands of installed files. */
async function finish(report: SuiteReport): Promise<void> {
  report.running = "disposing of what the tests share";
  process.send?.(report);
  await disposeSharedResources();
  delete report.running;
  report.finished = true;
  process.send?.(report);
}

async function counted(report: SuiteReport, title: string, run: () => Promise<void>): Promise<void> {
  report.running = title;
  process.send?.(report);
  try {
    await run();
    report.passed++;
    report.passedTitles.push(title);
  } catch (error) {
    report.failed++;
    report.failures.push(`${title}: ${error instanceof Error ? error.message : String(error)}`);
    throw error;
  } finally {
    delete report.running;
    process.send?.(report);
    if (report.passed + report.failed === report.declared) await finish(report);
  }
}

async function failAfter(timeoutMs: number, title: string, body: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`"${title}" did not finish within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([Promise.resolve().then(body), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

// The runner has exited.
process.once("disconnect", () => process.exit(1));
// The listener alone would keep the process alive.
process.channel?.unref();
// A file with only skipped suites, or without declarations, must still send its report.
process.once("beforeExit", () => reports.forEach((report) => process.send?.(report)));
