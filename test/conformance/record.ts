// TEST_API_SERVER=real node test/dist/conformance/record.js [AREA...] plays the scenarios on a real kube-apiserver and writes what it answers to
// fixtures/conformance.
import { isRealApiServer } from "../support/api/api-server.js";
import { kubernetesVersion } from "../support/machine/binaries.js";
import { startConformanceServer } from "../support/conformance/conformance-server.js";
import { writeGolden, type Golden } from "../support/conformance/conformance-golden.js";
import { readScenarios, scenarioAreas } from "../support/conformance/conformance-scenario.js";
import { playNormalised } from "../support/conformance/conformance-server.js";

if (!isRealApiServer) throw new Error("goldens are recorded from a real server: set TEST_API_SERVER=real");
const areas = process.argv.length > 2 ? process.argv.slice(2) : scenarioAreas();
await using server = await startConformanceServer();
for (const area of areas) {
  const golden: Golden = { recordedFrom: kubernetesVersion(), scenarios: {} };
  for (const scenario of readScenarios(area)) golden.scenarios[scenario.title] = await playNormalised(server, scenario);
  await writeGolden(area, golden);
  console.log(`recorded ${area}: ${Object.keys(golden.scenarios).length} scenarios`);
}
