import { startTestApiServer, type TestApiServer } from "./api-server.js";
import { normaliseOutcomes } from "./conformance-normalise.js";
import { playScenario, type StepOutcome } from "./conformance-play.js";
import type { Scenario } from "./conformance-scenario.js";

/** Starts the server under test with the definitions that scenarios use. */
export function startConformanceServer(): Promise<TestApiServer> {
  return startTestApiServer({ crds: ["test/conformance/definitions.yaml"] });
}

let played = 0;

/** Plays a scenario in a namespace of its own and gives its outcomes in comparable form. */
export async function playNormalised(server: TestApiServer, scenario: Scenario): Promise<StepOutcome[]> {
  const namespace = `space-${++played}-of-scenario`;
  return normaliseOutcomes(await playScenario(server, scenario, namespace), namespace);
}
