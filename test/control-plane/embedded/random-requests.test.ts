// Random sequences of requests are answered by the embedded server as by kube-apiserver, but for what known-random-differences.txt lists with a
// reason. The sequences of a seed are always the same, and so is the verdict. A longer run with other seeds writes each kind of difference, made
// short, to a file:
//
//   TEST_RANDOM_COUNT=2000 TEST_RANDOM_SEED=7 TEST_RANDOM_REPORT=differences.txt node test/dist/support/run.js control-plane/embedded/random-requests.test.js
import fc from "../../support/fast-check.js";
import { writeFileSync } from "node:fs";
import { startApiServer } from "#apiserver/index.js";
import { installCrd } from "../../support/api/api-server.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { readDefinitions } from "../../support/conformance/conformance-server.js";
import type { Step } from "../../support/conformance/conformance-scenario.js";
import {
  findDisagreement,
  shrink,
  type Disagreement,
  type Servers,
} from "../../support/random-requests/differential.js";
import { readKnownPatterns } from "../../support/random-requests/known-patterns.js";
import { randomSteps } from "../../support/random-requests/random-steps.js";
import { assert, suite } from "../../support/suite.js";

const COUNT = Number(process.env["TEST_RANDOM_COUNT"] ?? 200);
const SEED = Number(process.env["TEST_RANDOM_SEED"] ?? 1);
/** What is written besides the failure: each kind of difference with the number of sequences that showed it. */
const REPORT = process.env["TEST_RANDOM_REPORT"];
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
    "the embedded server answers as kube-apiserver does, but for what is known",
    async () => {
      await using plane = await startControlPlane();
      const crds = readDefinitions();
      await Promise.all(crds.map((crd) => installCrd(plane, crd)));
      await using embedded = await startApiServer({ crds });
      const found = await search({ real: plane, embedded });
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

/** Plays the sequences, and makes what differs short, the most frequent difference first. */
async function search(servers: Servers): Promise<{ unknown: number; text: string }> {
  const found = new Map<string, Found>();
  const known = readKnownPatterns("known-random-differences.txt");
  const sequences = fc.sample(randomSteps(MAX_STEPS), { seed: SEED, numRuns: COUNT }).values();
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
  const summary = `of ${COUNT} sequences ${count.alike} are answered alike, ${count.known} differ as is known, ${count.unknown} otherwise`;
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
