// Objects of all built-in kinds are changed on the embedded server as on kube-apiserver: whole, their status and what other endpoints write, by PUT and by
// each form of patch. What odd changes lead to and how they are refused is the same, but for what known-differences.txt lists with a reason. The updates of a
// seed are always the same, and so is the verdict. A longer run tries others; four updates are made of each object:
//
//   TEST_RANDOM_COUNT=600 TEST_RANDOM_SEED=7 TEST_RANDOM_REPORT=differences.txt node test/dist/support/run.js control-plane/embedded/updates
import { writeFileSync } from "node:fs";
import fc from "../../../support/fast-check.js";
import { startApiServer } from "#apiserver/index.js";
import type { JsonObject } from "#apiserver/json.js";
import { startControlPlane } from "../../../support/machine/control-plane.js";
import { findDisagreements, playSteps, type Servers } from "../../../support/random-requests/differential.js";
import { updatedObject, type UpdatedObject } from "../../../support/random-requests/mutations/mutated-updates.js";
import {
  describeDisagreement,
  SERVICE_ACCOUNT,
  tryCases,
} from "../../../support/random-requests/mutations/mutation-report.js";
import { assert, suite } from "../../../support/suite.js";

const COUNT = Number(process.env["TEST_RANDOM_COUNT"] ?? 600);
const SEED = Number(process.env["TEST_RANDOM_SEED"] ?? 1);
/** Where all that differs is written, besides the failure. */
const REPORT = process.env["TEST_RANDOM_REPORT"];
const TIMEOUT_MS = 120_000 + COUNT * 2_000;

suite("mutated updates", (test) => {
  test(
    "the embedded server answers as kube-apiserver does, but for what is known",
    async () => {
      await using plane = await startControlPlane();
      await using embedded = await startApiServer();
      const { unknown, text } = await tryCases({
        cases: fc.sample(updatedObject, { seed: SEED, numRuns: COUNT }),
        knownFile: "updates/known-differences.txt",
        noun: "updates",
        tryOne: (object) => tryUpdates({ real: plane, embedded }, object),
      });
      if (REPORT !== undefined) writeFileSync(REPORT, text);
      assert.is(unknown, 0, text);
    },
    { timeoutMs: TIMEOUT_MS },
  );
});

/** Stores the object on the embedded server to learn what there is to be changed, then changes it on both. */
async function tryUpdates(servers: Servers, object: UpdatedObject): Promise<(string | undefined)[]> {
  const { kind, stored, updatesOf, cleanUp } = object;
  const before = [SERVICE_ACCOUNT, ...stored];
  const { namespace, outcomes } = await playSteps(servers.embedded, [...before, cleanUp]);
  const updates = updatesOf(
    JSON.parse(JSON.stringify(outcomes.at(-1)?.body).replaceAll(namespace, "$ns")) as JsonObject,
  );
  const found = await findDisagreements(servers, [...before, ...updates.map(({ step }) => step), cleanUp]);
  const shown = stored.filter(({ silent }) => silent !== true).length;
  const ofStored = found.find(({ step }) => step <= shown);
  if (ofStored !== undefined) return [describeDisagreement({ subject: `${kind} stored`, changes: [] }, ofStored)];
  return updates.map(({ way, changes }, index) => {
    const differing = found.find(({ step }) => step === shown + index + 1);
    return differing && describeDisagreement({ subject: `${kind} ${way}`, changes }, differing);
  });
}
