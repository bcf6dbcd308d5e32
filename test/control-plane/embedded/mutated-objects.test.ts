// Odd objects of all built-in kinds are taken, completed and refused by the embedded server as by kube-apiserver, in the same words, but for what
// known-mutated-differences.txt lists with a reason. The objects of a seed are always the same, and so is the verdict. A longer run tries others:
//
//   TEST_RANDOM_COUNT=1500 TEST_RANDOM_SEED=7 TEST_RANDOM_REPORT=differences.txt node test/dist/support/run.js control-plane/embedded/mutated-objects.test.js
import { writeFileSync } from "node:fs";
import fc from "../../support/fast-check.js";
import { startApiServer } from "#apiserver/index.js";
import type { Difference } from "../../support/conformance/conformance-golden.js";
import type { Step } from "../../support/conformance/conformance-scenario.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { findDisagreement, type Disagreement, type Servers } from "../../support/random-requests/differential.js";
import { readKnownPatterns } from "../../support/random-requests/known-patterns.js";
import { mutatedObject, type MutatedObject } from "../../support/random-requests/mutated-objects.js";
import { assert, suite } from "../../support/suite.js";

const COUNT = Number(process.env["TEST_RANDOM_COUNT"] ?? 600);
const SEED = Number(process.env["TEST_RANDOM_SEED"] ?? 1);
/** Where all that differs is written, besides the failure. */
const REPORT = process.env["TEST_RANDOM_REPORT"];
/** Objects that are tried at the same time: the real server waits for its disk. */
const AT_ONCE = 4;
const TIMEOUT_MS = 120_000 + COUNT * 1_000;

suite("mutated objects", (test) => {
  test(
    "the embedded server answers as kube-apiserver does, but for what is known",
    async () => {
      await using plane = await startControlPlane();
      await using embedded = await startApiServer();
      const { unknown, text } = await search({ real: plane, embedded });
      if (REPORT !== undefined) writeFileSync(REPORT, text);
      assert.is(unknown, 0, text);
    },
    { timeoutMs: TIMEOUT_MS },
  );
});

async function search(servers: Servers): Promise<{ unknown: number; text: string }> {
  const known = readKnownPatterns("known-mutated-differences.txt");
  const objects = fc.sample(mutatedObject, { seed: SEED, numRuns: COUNT }).values();
  const count = { alike: 0, known: 0, unknown: 0 };
  const found: string[] = [];
  const tryMore = async () => {
    for (const object of objects) {
      const steps: Step[] = [SERVICE_ACCOUNT, { method: "POST", target: object.target, body: object.body }];
      const differing = await findDisagreement(servers, steps);
      if (differing === undefined) {
        count.alike++;
        continue;
      }
      const text = describe(object, differing);
      const isKnown = known.some((pattern) => pattern.test(text));
      count[isKnown ? "known" : "unknown"]++;
      if (!isKnown) found.push(text);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, tryMore));
  const summary = `of ${COUNT} objects ${count.alike} are answered alike, ${count.known} differ as is known, ${count.unknown} otherwise`;
  return { unknown: count.unknown, text: [summary, ...found].join("\n\n") };
}

/** No controller runs that would make it, and no Pod is let in without it. */
const SERVICE_ACCOUNT: Step = {
  method: "POST",
  target: "$sa",
  kind: "ServiceAccount",
  body: { metadata: { name: "default" } },
  silent: true,
};

/** The kind, what was changed, and of both answers what the other does not have. */
function describe({ kind, changes }: MutatedObject, { differences }: Disagreement): string {
  const shown = differences.find(({ path }) => path.endsWith("body/message")) ?? differences[0];
  if (shown === undefined) throw new Error("a disagreement without a difference");
  const { golden, answered } = partsOf(shown);
  return `${kind} ${shown.path}\n  ${changes.join("; ")}\n  real:     ${golden}\n  embedded: ${answered}`;
}

/** The errors of a message that the other does not have; else the values. */
function partsOf({ golden, answered }: Difference): { golden: string; answered: string } {
  if (typeof golden !== "string" || typeof answered !== "string")
    return { golden: JSON.stringify(golden) ?? "nothing", answered: JSON.stringify(answered) ?? "nothing" };
  const errorsOf = (message: string) => message.replace(/^.*? is invalid: \[?/, "").split(/, (?=[a-z]\w*[.[:])/);
  const [ofReal, ofEmbedded] = [errorsOf(golden), errorsOf(answered)];
  const without = (errors: string[], others: string[]) => errors.filter((each) => !others.includes(each)).join(", ");
  return { golden: without(ofReal, ofEmbedded), answered: without(ofEmbedded, ofReal) };
}
