// Objects of all built-in kinds are changed on the embedded server as on kube-apiserver: whole, their status and what other endpoints write, by PUT and by
// each form of patch. What odd changes lead to and how they are refused is the same, but for what known-differences.txt lists with a reason. The updates of a
// seed are always the same, and so is the verdict. A longer run tries others; four updates are made of each object:
//
//   TEST_RANDOM_COUNT=600 TEST_RANDOM_SEED=7 TEST_RANDOM_REPORT=differences.txt node test/dist/support/run.js control-plane/embedded/updates
import type { JsonObject } from "#apiserver/json.js";
import { findDisagreements, playSteps, type Servers } from "../../../support/random-requests/differential.js";
import { updatedObject, type UpdatedObject } from "../../../support/random-requests/mutations/mutated-updates.js";
import {
  describeDisagreement,
  SERVICE_ACCOUNT,
  suiteOfTrials,
} from "../../../support/random-requests/mutations/mutation-report.js";

suiteOfTrials("mutated updates", {
  cases: updatedObject,
  knownFile: "updates/known-differences.txt",
  noun: "updates",
  caseTimeoutMs: 2_000,
  tryOne: tryUpdates,
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
