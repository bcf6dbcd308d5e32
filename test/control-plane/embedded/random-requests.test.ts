// Random sequences of requests are answered by the embedded server as by kube-apiserver, but for what known-random-differences.txt lists with a
// reason. The sequences of a seed are always the same, and so is the verdict. A longer run with other seeds writes each kind of difference, made
// short, to a file:
//
//   TEST_RANDOM_COUNT=2000 TEST_RANDOM_SEED=7 TEST_RANDOM_REPORT=differences.txt node test/dist/support/run.js control-plane/embedded/random-requests.test.js
import fc from "../../support/fast-check.js";
import { writeFileSync } from "node:fs";
import { startApiServer } from "#apiserver/index.js";
import { apiRequest, type Connection } from "../../support/api/api-request.js";
import { installCrd, type Crd } from "../../support/api/api-server.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import { readDefinitions } from "../../support/conformance/conformance-server.js";
import type { Step } from "../../support/conformance/conformance-scenario.js";
import {
  findDisagreement,
  shrink,
  type Disagreement,
  type Servers,
} from "../../support/random-requests/differential.js";
import { readKnownPatterns } from "../../support/random-requests/known-patterns.js";
import { randomDefinitions } from "../../support/random-requests/random-definitions.js";
import type { RandomKind } from "../../support/random-requests/random-kind.js";
import { RANDOM_KINDS } from "../../support/random-requests/random-kinds.js";
import { randomSteps } from "../../support/random-requests/random-steps.js";
import { assert, suite } from "../../support/suite.js";

const COUNT = Number(process.env["TEST_RANDOM_COUNT"] ?? 200);
const SEED = Number(process.env["TEST_RANDOM_SEED"] ?? 1);
/** What is written besides the failure: each kind of difference with the number of sequences that showed it. */
const REPORT = process.env["TEST_RANDOM_REPORT"];
/** Random definitions whose kinds requests are about, too; 0 for none. */
const DEFINITIONS = Number(process.env["TEST_RANDOM_DEFINITIONS"] ?? 10);
/** Whether requests are about those kinds alone. Default: a fifth of the sequences is. */
const ONLY_DEFINITIONS = process.env["TEST_RANDOM_DEFINITIONS"] !== undefined && DEFINITIONS > 0;
const MAX_STEPS = 12;
const SHRINK_MS = 4_000;
/** Kinds of difference that are made short. */
const MAX_SHRUNK = 60;
/** A sequence takes a fifth of a second, and ten times as long on a busy machine. */
const TIMEOUT_MS = 120_000 + COUNT * 2_000 + MAX_SHRUNK * SHRINK_MS;
/** Sequences that are played at the same time: the real server waits for its disk. */
const AT_ONCE = 4;

suite("random requests", (test) => {
  test(
    "get the same responses from the embedded server as from kube-apiserver, except known differences",
    async () => {
      await using plane = await borrowControlPlane();
      const crds = readDefinitions();
      await using embedded = await startApiServer({ crds });
      const servers = { real: plane, embedded };
      await Promise.all(crds.map((crd) => installCrd(plane, crd)));
      const definitions = randomDefinitions(DEFINITIONS, SEED);
      const ofDefinitions: RandomKind[] = [];
      for (const { crd, kinds } of definitions) if (await installOnBoth(servers, crd)) ofDefinitions.push(...kinds);
      const sequences = ONLY_DEFINITIONS
        ? sequencesOf(ofDefinitions, COUNT)
        : [...sequencesOf(RANDOM_KINDS, COUNT), ...sequencesOf(ofDefinitions, Math.ceil(COUNT / 4))];
      const found = await search(servers, sequences);
      if (REPORT !== undefined) writeFileSync(REPORT, found.text);
      assert.is(found.unknown, 0, found.text);
    },
    { timeoutMs: TIMEOUT_MS },
  );
});

interface Found {
  count: number;
  example: Disagreement;
}

/** Installs a random definition; false if both servers refuse it, for the same reason. */
async function installOnBoth(servers: Servers, crd: Crd): Promise<boolean> {
  const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
  const ask = (connection: Connection) => apiRequest<{ message?: string }>(connection, path, { body: crd });
  const [real, embedded] = await Promise.all([ask(servers.real), ask(servers.embedded)]);
  const textOf = ({ status, body }: typeof real) =>
    `${status} ${body.message ?? ""}`
      .split(/[[\],] ?/)
      .sort()
      .join("\n");
  assert.is(textOf(embedded), textOf(real), JSON.stringify(crd));
  if (real.status !== 201) return false;
  await Promise.all([installCrd(servers.real, crd), installCrd(servers.embedded, crd)]);
  return true;
}

function sequencesOf(kinds: RandomKind[], count: number): Step[][] {
  if (kinds.length === 0) return [];
  return fc.sample(randomSteps(MAX_STEPS, kinds), { seed: SEED, numRuns: count });
}

/** Plays the sequences, and makes what differs short, the most frequent difference first. */
async function search(servers: Servers, given: Step[][]): Promise<{ unknown: number; text: string }> {
  const found = new Map<string, Found>();
  const known = readKnownPatterns("known-random-differences.txt");
  const sequences = given.values();
  const count = { alike: 0, known: 0, unknown: 0 };
  const playMore = async () => {
    for (const steps of sequences) {
      const example = await findDisagreement(servers, steps);
      if (example === undefined) count.alike++;
      else if (known.some((pattern) => pattern.test(example.signature))) count.known++;
      else {
        count.unknown++;
        found.set(example.signature, { example, count: (found.get(example.signature)?.count ?? 0) + 1 });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, playMore));
  const byCount = [...found.values()].sort((one, other) => other.count - one.count);
  const shrunk: string[] = [];
  for (const { count, example } of byCount.slice(0, MAX_SHRUNK))
    shrunk.push(describe({ count, example: await shrink(servers, example, Date.now() + SHRINK_MS) }));
  const summary = `of ${given.length} sequences ${count.alike} are answered alike, ${count.known} differ as is known, ${count.unknown} otherwise`;
  return { unknown: count.unknown, text: [summary, ...shrunk].join("\n\n") };
}

function describe({ count, example }: Found): string {
  const { signature, steps, differences } = example;
  const shown = differences
    .slice(0, 6)
    .map(({ path, golden, answered }) => [
      `  ${path}`,
      `    real:     ${JSON.stringify(golden)}`,
      `    embedded: ${JSON.stringify(answered)}`,
    ]);
  const requests = steps.filter(({ silent, open }) => silent !== true && open === undefined);
  return [`${count} × ${signature}`, ...requests.map(describeStep), ...shown.flat()].join("\n");
}

function describeStep({ method, target, ...rest }: Step): string {
  return `  - ${JSON.stringify({ [method]: target, ...rest })}`;
}
