// Plays the scenarios of a law, and random ones.
//
// A scenario that stands in known-broken.txt (`law seed # note`) has to fail: when it holds, its line has to go. A law is explored with random
// cases once none of its scenarios is listed: a few of them, or as many as MODEL_SECONDS give time for; TEST_SEED gives others. A
// counterexample is printed with its seed and path: TEST_SEED=seed MODEL_PATH=path plays it alone. TEST_THOROUGH=1 plays all variants of the
// scenarios.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "../../../../support/fast-check.js";
import { isRealApiServer } from "../../../../support/api/api-server.js";
import { repositoryRoot } from "../../../../support/repository.js";
import { isThorough, seed as firstSeed } from "../../../../support/runs.js";
import { suite } from "../../../../support/suite.js";
import type { Scene } from "./scene.js";

const FILE = "test/integration/runtime/life-cycle/laws/known-broken.txt";
const LANES = 4;
const SECONDS = Number(process.env["MODEL_SECONDS"]);
const IS_EXPLORING = SECONDS > 0;
const PATH = process.env["MODEL_PATH"];
/** A listed scenario that is slow today holds soon enough when it holds. */
const PATIENCE_MS = { held: 5_000, broken: 2_000, random: 4_000 };
const TIMEOUT_MS = 60_000;
/** How many variants of a title are played, unless the run is thorough. */
const QUICK_VARIANTS = isThorough || IS_EXPLORING ? Infinity : 1;

/** One case that shows a law. */
export interface Scenario<Case> {
  readonly seed: number;
  readonly title: string;
  readonly case: Case;
}

interface Law<Case> {
  /** How the lines of known-broken.txt call it. */
  readonly name: string;
  readonly title: string;
  readonly scenarios: readonly Scenario<Case>[];
  readonly open: (patienceMs: number) => Promise<Scene>;
  /** Plays a case; what breaks the law is added to the problems of the scene. */
  readonly play: (scene: Scene, one: Case) => Promise<void>;
  /** Whether a case needs a server that makes faults. */
  readonly needsFaults?: (one: Case) => boolean;
  /** How long what a case waits for may take, where the usual time is too short for it. */
  readonly patienceMs?: number;
  readonly explored?: { readonly title: string; readonly cases: fc.Arbitrary<Case> | undefined };
}

const listed = readFileSync(join(repositoryRoot, FILE), "utf8")
  .split("\n")
  .map((line) => line.replace(/#.*/, "").trim())
  .filter((line) => line !== "");

/** Tells whether a scenario of a law is known to be broken; without a seed, whether any is. */
export function isBroken(law: string, seed?: number): boolean {
  return listed.some((line) => (seed === undefined ? line.startsWith(`${law} `) : line === `${law} ${seed}`));
}

export function declareLaw<Case>(law: Law<Case>): void {
  const { name, title, needsFaults = () => false, explored } = law;
  const isPlayed = (one: Case) => !isRealApiServer || !needsFaults(one);
  const scenarios = firstVariants(law.scenarios.filter((scenario) => isPlayed(scenario.case)));
  const outcomes = inLanes(scenarios, async ({ seed, case: one }) => {
    const isListed = isBroken(name, seed);
    const problems = await problemsOf(law, one, isListed ? PATIENCE_MS.broken : PATIENCE_MS.held);
    if (!isListed && problems.length > 0)
      throw new Error(`${name} ${seed}: ${JSON.stringify(one)}\n${problems.join("\n")}`);
    if (isListed && problems.length === 0) throw new Error(`"${name} ${seed}" holds: remove its line from ${FILE}`);
    if (isListed) console.log(`known to be broken: ${name} ${seed}: ${problems.join("; ")}`);
  });
  suite(title, (test) => {
    test(`has no obsolete "${name}" entries in known-broken.txt`, () => {
      const known = new Set(law.scenarios.map(({ seed }) => `${name} ${seed}`));
      const unknown = listed.filter((line) => line.startsWith(`${name} `) && !known.has(line));
      if (unknown.length > 0) throw new Error(unknown.join(", "));
    });
    for (const scenario of scenarios) test(scenario.title, () => outcomes(scenario), { timeoutMs: TIMEOUT_MS });
    if (explored?.cases !== undefined && scenarios.length > 0) {
      const cases = explored.cases.filter(isPlayed);
      const timeoutMs = TIMEOUT_MS + (IS_EXPLORING ? SECONDS * 2_000 : 0);
      test(explored.title, () => explore(law, cases), { timeoutMs });
    }
  });
}

// What stands in brackets at the end of a title tells its variants apart.
function firstVariants<Case>(scenarios: readonly Scenario<Case>[]): readonly Scenario<Case>[] {
  const counts = new Map<string, number>();
  return scenarios.filter(({ title }) => {
    const plain = title.replace(/ \([^(]*\)$/, "");
    const count = (counts.get(plain) ?? 0) + 1;
    counts.set(plain, count);
    return count <= QUICK_VARIANTS;
  });
}

async function problemsOf<Case>(law: Law<Case>, one: Case, usualMs: number): Promise<readonly string[]> {
  const { open, play, patienceMs = usualMs } = law;
  await using scene = await open(patienceMs);
  await play(scene, one);
  return scene.problems;
}

// A few cases in every run, and as many as there is time for where it is asked for.
async function explore<Case>(law: Law<Case>, cases: fc.Arbitrary<Case>): Promise<void> {
  // A case that is played is never interrupted: it would leave its operator running.
  const deadline = performance.now() + SECONDS * 1_000;
  const property = fc.asyncProperty(cases, async (one) => {
    if (IS_EXPLORING && performance.now() > deadline) return;
    const problems = await problemsOf(law, one, PATIENCE_MS.random);
    if (problems.length > 0) throw new Error(problems.join("\n"));
  });
  if (PATH !== undefined)
    return fc.assert(property, {
      seed: firstSeed,
      path: PATH,
      numRuns: 1,
      endOnFailure: true,
      includeErrorInReport: true,
    });
  const lanes = Array.from({ length: IS_EXPLORING ? LANES : 2 }, (_, lane) => firstSeed + lane);
  const limits = { numRuns: IS_EXPLORING ? 20 * SECONDS : 1 };
  const ends = await Promise.allSettled(
    lanes.map((seed) => fc.assert(property, { seed, ...limits, includeErrorInReport: true })),
  );
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/** Returns a function that hands out what became of an item; all are played as soon as the first one is asked for. */
function inLanes<Item>(items: readonly Item[], play: (item: Item) => Promise<void>): (item: Item) => Promise<void> {
  let outcomes: Map<Item, Promise<void>> | undefined;
  const start = () => {
    const lanes = Array.from({ length: LANES }, () => Promise.resolve());
    // Each lane takes every fourth item, so that who waits for one waits for those before it only.
    return new Map(
      items.map((item, index) => {
        const lane = index % LANES;
        const outcome = lanes[lane]!.then(() => play(item));
        lanes[lane] = outcome.catch(() => {});
        return [item, outcome];
      }),
    );
  };
  return (item) => (outcomes ??= start()).get(item)!;
}
