// Odd objects of all built-in kinds are taken, completed and refused by the embedded server as by kube-apiserver, in the same words, but for what
// known-mutated-differences.txt lists with a reason. The objects of a seed are always the same, and so is the verdict. A longer run tries others:
//
//   TEST_RANDOM_COUNT=1500 TEST_RANDOM_SEED=7 TEST_RANDOM_REPORT=differences.txt node test/dist/support/run.js control-plane/embedded/mutated-objects.test.js
import { findDisagreement, type Servers } from "../../support/random-requests/differential.js";
import { mutatedObject, type MutatedObject } from "../../support/random-requests/mutations/mutated-objects.js";
import {
  describeDisagreement,
  SERVICE_ACCOUNT,
  suiteOfTrials,
} from "../../support/random-requests/mutations/mutation-report.js";

suiteOfTrials("mutated objects", {
  cases: mutatedObject,
  knownFile: "known-mutated-differences.txt",
  noun: "objects",
  caseTimeoutMs: 1_000,
  tryOne: async (servers, object) => [await tryObject(servers, object)],
});

async function tryObject(servers: Servers, object: MutatedObject): Promise<string | undefined> {
  const { kind, target, body, changes } = object;
  const differing = await findDisagreement(servers, [SERVICE_ACCOUNT, { method: "POST", target, body }]);
  return differing && describeDisagreement({ subject: kind, changes }, differing);
}
