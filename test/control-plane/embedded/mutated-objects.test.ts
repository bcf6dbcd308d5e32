// Odd objects of all built-in kinds are taken, completed and refused by the embedded server as by kube-apiserver, in the same words, but for what
// known-mutated-differences.txt lists with a reason. The objects of a seed are always the same, and so is the verdict. A longer run tries others:
//
//   TEST_RANDOM_COUNT=1500 TEST_RANDOM_SEED=7 TEST_RANDOM_REPORT=differences.txt node test/dist/support/run.js control-plane/embedded/mutated-objects.test.js
import { writeFileSync } from "node:fs";
import fc from "../../support/fast-check.js";
import { startApiServer } from "#apiserver/index.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { findDisagreement, type Servers } from "../../support/random-requests/differential.js";
import { mutatedObject, type MutatedObject } from "../../support/random-requests/mutations/mutated-objects.js";
import {
  describeDisagreement,
  SERVICE_ACCOUNT,
  tryCases,
} from "../../support/random-requests/mutations/mutation-report.js";
import { assert, suite } from "../../support/suite.js";

const COUNT = Number(process.env["TEST_RANDOM_COUNT"] ?? 600);
const SEED = Number(process.env["TEST_RANDOM_SEED"] ?? 1);
/** Where all that differs is written, besides the failure. */
const REPORT = process.env["TEST_RANDOM_REPORT"];
const TIMEOUT_MS = 120_000 + COUNT * 1_000;

suite("mutated objects", (test) => {
  test(
    "the embedded server answers as kube-apiserver does, but for what is known",
    async () => {
      await using plane = await startControlPlane();
      await using embedded = await startApiServer();
      const { unknown, text } = await tryCases({
        cases: fc.sample(mutatedObject, { seed: SEED, numRuns: COUNT }),
        knownFile: "known-mutated-differences.txt",
        noun: "objects",
        tryOne: async (object) => [await tryObject({ real: plane, embedded }, object)],
      });
      if (REPORT !== undefined) writeFileSync(REPORT, text);
      assert.is(unknown, 0, text);
    },
    { timeoutMs: TIMEOUT_MS },
  );
});

async function tryObject(servers: Servers, object: MutatedObject): Promise<string | undefined> {
  const { kind, target, body, changes } = object;
  const differing = await findDisagreement(servers, [SERVICE_ACCOUNT, { method: "POST", target, body }]);
  return differing && describeDisagreement({ subject: kind, changes }, differing);
}
