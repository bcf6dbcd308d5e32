// Shows which small changes of the source no test detects: node test/dist/mutants/mutants.js --help
//
// Record the mutants before you remove or move tests. Afterwards `--compare` shows which of the killed ones survive. A mutant is identified by the
// names and the text around it, so the code may have moved. All tests run in a copy of the repository.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { transformSync } from "esbuild";
import { repositoryRoot } from "../support/repository.js";
import { runFile } from "../support/run.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { calledName, collectCalls, type CalledFunctions } from "./covering-tests.js";
import { drawMutations, findMutations, mutate, mutationKey, type Mutation, type MutationSite } from "./mutations.js";

const HELP = `node test/dist/mutants/mutants.js [options]

  --count N       how many mutants are chosen at random. Default: 200
  --seed N        the seed of the choice. Default: 1
  --record FILE   writes the outcome of each mutant to a file; a later run continues with the others
  --compare FILE  tries the mutants that were killed according to a file; fails if one survives or is not found
  --tests TEXT    runs only test files with this text in their path
  --calls FILE    reads which functions each test file calls; if the file does not exist, runs all tests and writes it`;

const PACKAGES = ["apiserver", "generator", "runtime", "schema"];
const SUITES = ["unit", "golden", "conformance", "integration", "types"];
// How many test files run at once. Mutants are tried one after the other.
const AT_ONCE = 4;
const AT_ONCE_WITH_COVERAGE = 2;

/** What became of a mutant. */
interface Outcome extends Mutation {
  /** The test file that failed; absent if none did. */
  readonly killedBy?: string;
}

interface CoveringTest {
  /** From `test/dist`. */
  readonly file: string;
  readonly durationMs: number;
  readonly calls: CalledFunctions;
}

/** Copies the repository into a folder. */
function copyRepository(folder: string): void {
  const names = readdirSync(repositoryRoot).filter((name) => name !== ".git");
  execFileSync("cp", ["-a", "--reflink=auto", ...names.map((name) => join(repositoryRoot, name)), folder]);
}

/** Compiles a file of the copy in `root` from this text. */
function compile(root: string, file: string, text: string): void {
  const { code } = transformSync(text, { loader: "ts", target: "node20", sourcefile: file });
  writeFileSync(join(root, compiledOf(file)), code);
}

function compiledOf(file: string): string {
  return file.replace("/src/", "/dist/").replace(/\.ts$/, ".js");
}

/** Returns the sources of the packages by their paths from the root. */
function readSources(): Map<string, string> {
  const files = PACKAGES.flatMap((name) => {
    const below = readdirSync(join(repositoryRoot, name, "src"), { recursive: true, encoding: "utf8" });
    return below.filter((file) => file.endsWith(".ts")).map((file) => `${name}/src/${file}`);
  });
  return new Map(files.sort().map((file) => [file, readFileSync(join(repositoryRoot, file), "utf8")]));
}

/** Runs each test file on its own and records the functions that it calls. A file that fails without a mutant is skipped. */
async function collectTests(root: string, only: string): Promise<CoveringTest[]> {
  const folder = join(root, "test/dist");
  const files = SUITES.flatMap((suite) => {
    const below = readdirSync(join(folder, suite), { recursive: true, encoding: "utf8" });
    return below.filter((file) => file.endsWith(".test.js")).map((file) => join(suite, file));
  });
  const selected = files.filter((file) => file.includes(only)).sort();
  if (selected.length === 0) throw new Error(`no test file has "${only}" in its path`);
  const tests: CoveringTest[] = [];
  await forEachAtOnce(AT_ONCE_WITH_COVERAGE, selected, async (file) => {
    let problem: string | undefined;
    let durationMs = 0;
    const calls = await collectCalls(root, async (env) => {
      ({ problem, durationMs } = await runFile(join(folder, file), { env }));
    });
    if (problem === undefined) tests.push({ file, durationMs, calls });
    else console.log(`skipped: ${file}: ${problem}`);
  });
  return tests;
}

async function forEachAtOnce<Item>(count: number, items: readonly Item[], visit: (item: Item) => Promise<void>) {
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await visit(item);
  };
  await Promise.all(Array.from({ length: count }, work));
}

/** A file of `--calls`: the names of all functions, and those of each test file by their places in this list. */
interface KnownCalls {
  readonly names: readonly string[];
  readonly tests: readonly { readonly file: string; readonly durationMs: number; readonly calls: readonly number[] }[];
}

function readTests(file: string): CoveringTest[] {
  const { names, tests } = JSON.parse(readFileSync(file, "utf8")) as KnownCalls;
  return tests.map((test) => ({ ...test, calls: new Set(test.calls.map((place) => names[place]!)) }));
}

function writeTests(file: string, tests: readonly CoveringTest[]): void {
  const names = [...new Set(tests.flatMap(({ calls }) => [...calls]))];
  const places = new Map(names.map((name, place) => [name, place]));
  const known: KnownCalls = {
    names,
    tests: tests.map((test) => ({ ...test, calls: [...test.calls].map((name) => places.get(name)!) })),
  };
  writeFileSync(file, JSON.stringify(known));
}

/** Returns the tests that call the function around a mutant, or load its file if it is in none; the fastest first. */
function testsFor({ file, functionName }: MutationSite, tests: readonly CoveringTest[]): CoveringTest[] {
  const name = calledName(compiledOf(file), functionName);
  return tests.filter(({ calls }) => calls.has(name)).sort((one, other) => one.durationMs - other.durationMs);
}

/** Returns the test file that detects the mutant; undefined if none does. */
async function kill(
  site: MutationSite,
  { root, tests, text }: { root: string; tests: readonly CoveringTest[]; text: string },
): Promise<string | undefined> {
  compile(root, site.file, mutate(text, site));
  let killer: string | undefined;
  const run = async ({ file, durationMs }: CoveringTest) => {
    if (killer !== undefined) return;
    const limits = { fileTimeoutMs: 30_000 + 5 * durationMs, exitGraceMs: 10_000 };
    const { problem } = await runFile(join(root, "test/dist", file), limits);
    if (problem !== undefined) killer ??= file;
  };
  try {
    await forEachAtOnce(AT_ONCE, tests, run);
    return killer;
  } finally {
    compile(root, site.file, text);
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      ...{
        help: { type: "boolean" },
        count: { type: "string", default: "200" },
        seed: { type: "string", default: "1" },
      },
      ...{ record: { type: "string" }, compare: { type: "string" }, tests: { type: "string", default: "" } },
      calls: { type: "string" },
    },
  });
  if (values.help === true) {
    console.log(HELP);
    return 0;
  }
  const sources = readSources();
  const sites = findMutations(sources);
  const { record, compare } = values;
  if (compare !== undefined && compare === record) {
    console.error("--record must name another file than --compare: the mutants in it are not tried again");
    return 2;
  }
  const before = compare === undefined ? undefined : readOutcomes(compare);
  const recorded = record !== undefined && existsSync(record) ? readOutcomes(record) : [];
  const known = new Map(recorded.map((outcome) => [mutationKey(outcome), outcome]));
  const wanted = new Set(before?.filter(({ killedBy }) => killedBy !== undefined).map(mutationKey));
  const drawn =
    before === undefined
      ? drawMutations(sites, Number(values.count), Number(values.seed))
      : sites.filter((site) => wanted.has(mutationKey(site)));
  await using folder = await createTemporaryFolder();
  const root = folder.path;
  copyRepository(root);
  // A test that fails because of how a file is compiled must not count for a mutant.
  for (const [file, text] of sources) compile(root, file, text);
  const { calls = "" } = values;
  const isKnown = existsSync(calls);
  const tests = isKnown ? readTests(calls) : await collectTests(root, values.tests);
  if (calls !== "" && !isKnown) writeTests(calls, tests);
  console.log(`${sites.length} places, ${drawn.length} mutants, ${tests.length} test files`);
  for (const site of drawn) {
    const key = mutationKey(site);
    if (known.has(key)) continue;
    const text = sources.get(site.file)!;
    const killedBy = await kill(site, { root, text, tests: testsFor(site, tests) });
    const { kind, package: name, within, occurrence } = site;
    known.set(key, {
      kind,
      package: name,
      within,
      text: site.text,
      occurrence,
      ...(killedBy !== undefined && { killedBy }),
    });
    if (record !== undefined) writeFileSync(record, `${JSON.stringify([...known.values()], undefined, 2)}\n`);
    const place = `${site.file}:${site.line}: ${kind}: ${site.text.slice(0, 80)}`;
    console.log(killedBy === undefined ? `survives  ${place}` : `killed    ${place}  (${killedBy})`);
  }
  const found = new Set(drawn.map(mutationKey));
  const gone = [...wanted].filter((key) => !found.has(key));
  for (const key of gone) console.log(`gone      ${key}`);
  const outcomes = drawn.map((site) => known.get(mutationKey(site))!);
  const killed = outcomes.filter(({ killedBy }) => killedBy !== undefined).length;
  console.log(`${killed} killed, ${outcomes.length - killed} survive, ${gone.length} gone`);
  return before === undefined || killed === wanted.size ? 0 : 1;
}

function readOutcomes(file: string): readonly Outcome[] {
  return JSON.parse(readFileSync(file, "utf8")) as Outcome[];
}

process.exitCode = await main();
