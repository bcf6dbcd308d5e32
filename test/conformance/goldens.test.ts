// The answers of the server under test are those that a real kube-apiserver gave to the same requests.
import { setTimeout as sleep } from "node:timers/promises";
import { isRealApiServer } from "../support/api/api-server.js";
import {
  differencesOf,
  readGolden,
  readKnownDifferences,
  type Difference,
} from "../support/conformance/conformance-golden.js";
import type { StepOutcome } from "../support/conformance/conformance-play.js";
import { readScenarios, scenarioAreas, type Scenario } from "../support/conformance/conformance-scenario.js";
import { playNormalised, startConformanceServer } from "../support/conformance/conformance-server.js";
import { assert, shared, suite } from "../support/suite.js";

/** Which share of the scenarios is played even where there is little time: one of so many. */
const PLAYED_EVERY = 16;

/**
 * How often a scenario may be played until it answers as recorded. On a real server, which recorded them all, an informer may see a
 * write later than the next request does; the embedded one has no such delay, and no second chance.
 */
const PLAYS = isRealApiServer ? 3 : 1;
// On a busy machine discovery lists a group for seconds after its definition is gone.
const PAUSE_MS = 2_500;

const startServer = shared(startConformanceServer);
// A real server has no differences from itself.
const known = isRealApiServer ? [] : readKnownDifferences();

let declared = 0;
for (const area of scenarioAreas()) {
  const golden = readGolden(area);
  const scenarios = readScenarios(area);
  suite(area, (test) => {
    for (const scenario of scenarios) {
      const { title } = scenario;
      const declare = isRealApiServer || declared++ % PLAYED_EVERY === 0 ? test : test.thorough;
      declare(
        title,
        async () => {
          const recorded = golden.scenarios[title];
          assert.ok(recorded, "nothing was recorded: run test/dist/conformance/record.js");
          const differences = await playUntilAlike(scenario, recorded ?? []);
          const expected = known.filter((line) => line.area === area && line.title === title).map(({ path }) => path);
          const unknown = differences.filter(({ path }) => !expected.includes(path));
          assert.is(unknown.map(describe).join("\n"), "");
          const gone = expected.filter((path) => !differences.some((difference) => difference.path === path));
          assert.equal(gone, [], "listed in known-differences.txt, and no longer different");
        },
        { timeoutMs: PLAYS * 20_000 },
      );
    }

    test("has a scenario for every golden and every known difference", () => {
      const titles = scenarios.map(({ title }) => title);
      assert.equal(
        Object.keys(golden.scenarios).filter((title) => !titles.includes(title)),
        [],
      );
      const stray = known.filter((line) => line.area === area && !titles.includes(line.title));
      assert.equal(stray, []);
    });
  });
}

/** What differed the last time that the scenario was played. */
async function playUntilAlike(scenario: Scenario, recorded: StepOutcome[], playsLeft = PLAYS): Promise<Difference[]> {
  const answered = await playNormalised(await startServer(), scenario);
  // kube-apiserver renews leases of its own while the scenarios are played.
  const differences = differencesOf(recorded, answered, { isShared: isRealApiServer });
  if (differences.length === 0 || playsLeft === 1) return differences;
  await sleep(PAUSE_MS);
  return playUntilAlike(scenario, recorded, playsLeft - 1);
}

function describe({ path, golden, answered }: Difference): string {
  return `${path}\n  golden:   ${JSON.stringify(golden)}\n  answered: ${JSON.stringify(answered)}`;
}
