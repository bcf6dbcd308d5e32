// The only file that imports uvu. It exits 0 when a `before` or `after.each` hook throws and when `.run()` is forgotten, and
// it has no timeout. So this wrapper offers no hooks (set-up is a disposable: `await using`), runs the suite itself, limits
// every test in time, and reports to run.ts what was declared and what became of it.
import { exec, suite as uvuSuite } from "uvu";
import { isAdded, isThorough, ONLY_THOROUGH } from "./runs.js";

export * as assert from "./assert.js";

/** What a test file tells the runner about itself; counts are tests. */
export interface SuiteReport {
  /** Absent if the process runs no other file. */
  file?: string;
  declared: number;
  passed: number;
  failed: number;
  /** Title and reason of every test that does not run here. */
  skipped: string[];
  /** The titles of the tests that passed. */
  passedTitles: string[];
  /** Title and message of every failure, for a file that is ended before it can print them. */
  failures: string[];
  /** The title of the test that runs, or what is done after the last one. */
  running?: string;
  /** Set once nothing is left to do: all tests ran, and what they shared is disposed. */
  finished?: true;
}

interface DeclareTestFunction {
  (title: string, body: () => unknown, options?: { timeoutMs?: number }): void;
}

/** Declares one test; its title states a law in the present tense. */
export interface DeclareTest extends DeclareTestFunction {
  /** Declares a test that does not run here; the run counts it and names it with the reason. */
  skip(title: string, reason: string): void;
  /** Declares a test that runs only where there is time; `.ci/run` names the file among those that it runs so. */
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

/** Says that the suites which follow are those of a file that shares the process with others. */
export function beginFile(file: string): void {
  current = beginReport({ file });
}

/** Runs what was declared, where several files share the process. */
export async function runDeclared(): Promise<void> {
  // No test of these files will say that it is the last.
  for (const report of reports.filter(({ declared }) => declared === 0)) await finish(report);
  await exec();
}

/** Declares and runs a suite. There are no hooks; use `await using` for set-up. */
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
 * Returns a function that creates a resource at its first call and hands out the same one afterwards.
 *
 * For what is too slow to start for every test. It is disposed after the last test of the file.
 */
export function shared<T extends AsyncDisposable>(create: () => Promise<T>): () => Promise<T> {
  let created: Promise<T> | undefined;
  const createOnce = async () => {
    const resource = await create();
    // What a helper shares is made anew for the next file of the process.
    const forget = () => (created = undefined);
    sharedResources.push({ forget, [Symbol.asyncDispose]: () => resource[Symbol.asyncDispose]() });
    return resource;
  };
  return () => (created ??= createOnce());
}

/** A resource that cannot be disposed makes the file fail: the rejection ends the process. */
async function disposeSharedResources(): Promise<void> {
  for (let last = sharedResources.pop(); last !== undefined; last = sharedResources.pop()) {
    last.forget();
    await last[Symbol.asyncDispose]();
  }
}

/** What is shared may be slow to dispose: a folder with thousands of installed files, for example. */
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

// Whoever waited for the reports is gone.
process.once("disconnect", () => process.exit(1));
// A listener alone would keep the process from its end.
process.channel?.unref();
// A file in which every suite was skipped, or which declares nothing, still has to say so.
process.once("beforeExit", () => reports.forEach((report) => process.send?.(report)));
