// An operator that is left alone ends where it should, whatever happened to it before.
//
// Random interleavings of what people, other controllers, the network and the operator itself do. TEST_SEED and MODEL_RUNS give
// other and more of them; the time between the commands is real, so a failure may need more than one attempt to come back.
import fc from "../../../../support/fast-check.js";
import { sleep } from "#runtime/base/wait.js";
import { waitFor } from "#apiserver/wait-for.js";
import { isThorough, seed } from "../../../../support/runs.js";
import { suite } from "../../../../support/suite.js";
import { Page } from "../../page-operator.js";
import { commands, freshText } from "./commands.js";
import { NAMES, World } from "./world.js";

const LANES = isThorough ? 16 : 4;
const RUNS_OF_A_LANE = Number(process.env["MODEL_RUNS"] ?? 1);
const QUIET_MS = 150;
/** All lanes run in one process, and share its time. */
const LANES_AT_ONCE = 4;

/** Waits until the controller keeps nothing for pages that are gone, and has nothing to do: a lost watch brings a deletion late. */
async function untilTidy({ client, operator, problems }: World): Promise<void> {
  const pages = (await client.list(Page)).length;
  const counts = () => operator.operator.controller("page").counts();
  await waitFor(
    "nothing is left over",
    () => {
      const { states, timers, queued, running } = counts();
      return states <= pages && timers <= pages && queued === 0 && running === 0;
    },
    { timeoutMs: 20_000 },
  ).catch(() => problems.push(`${JSON.stringify(counts())} is kept for ${pages} pages`));
}

async function checkEnd(world: World): Promise<void> {
  const { server, faults, problems } = world;
  await world.calm();
  let differences: string[] = [];
  await waitFor("all is as it should be", async () => (differences = await world.differences()).length === 0, {
    timeoutMs: 20_000,
    intervalMs: 25,
  }).catch(() => problems.push(...differences));
  await untilTidy(world);
  const requests = () => world.operator.requests.length;
  for (let before = -1; before !== requests(); await sleep(QUIET_MS)) before = requests();
  problems.push(...(await world.differences()).map((difference) => `after it was quiet: ${difference}`));
  // A write without an answer is made again, and one of the two changes nothing; a slow machine loses answers, too.
  const inVain = server.requests.filter(
    ({ changedNothing, query }) => changedNothing && query.includes("fieldManager=page"),
  );
  const unanswered = world.operators
    .flatMap(({ requests: lines }) => lines)
    .filter((line) => /^(PATCH|PUT|POST) .* undefined$/.test(line));
  if (inVain.length > unanswered.length + faults.rivals)
    problems.push(...inVain.map(({ method, path }) => `${method} ${path} changed nothing`), ...unanswered);
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

suite("operator model", (test) => {
  for (const hasFinalizer of [false, true])
    test(
      hasFinalizer
        ? "deletes everything it has to clean up after random events"
        : "reconciles the last state of all primaries after random events",
      async () => {
        const runLane = (lane: number) =>
          fc.assert(
            fc.asyncProperty(fc.commands(commands, { maxCommands: 25, size: "+2" }), async (sequence) => {
              await using world = await World.open({ hasFinalizer });
              // Most commands do nothing without a page, or before it has what the operator makes for it.
              const [first, ...others] = NAMES;
              await world.create(first, freshText());
              await waitFor("there is a page", async () => (await world.differences()).length === 0, { intervalMs: 5 });
              for (const name of others) await world.create(name, freshText());
              await fc.asyncModelRun(() => ({ model: { lostWatches: 0 }, real: world }), sequence);
              await checkEnd(world);
            }),
            // Smaller counterexamples take as long as the first one, and the timing is another one.
            { seed: seed + lane, numRuns: RUNS_OF_A_LANE, endOnFailure: true, includeErrorInReport: true },
          );
        const waiting = Array.from({ length: LANES }, (_, lane) => lane).values();
        const runWaiting = async () => {
          for (const lane of waiting) await runLane(lane);
        };
        const outcomes = await Promise.allSettled(Array.from({ length: LANES_AT_ONCE }, runWaiting));
        for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
      },
      { timeoutMs: 120_000 + RUNS_OF_A_LANE * 5_000 },
    );
});
