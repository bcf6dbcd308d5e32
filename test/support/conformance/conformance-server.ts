import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { startTestApiServer, type Crd, type TestApiServer } from "../api/api-server.js";
import { normaliseOutcomes } from "./conformance-normalise.js";
import { playScenario, type StepOutcome } from "./conformance-play.js";
import type { Scenario } from "./conformance-scenario.js";
import { repositoryRoot } from "../repository.js";

const DEFINITIONS = "test/conformance/definitions.yaml";

/** Reads the CRDs that scenarios use. */
export function readDefinitions(): Crd[] {
  const text = readFileSync(join(repositoryRoot, DEFINITIONS), "utf8");
  return parseAllDocuments(text).map((document) => document.toJS() as Crd);
}

/** Starts the server under test with the CRDs that scenarios use. */
export function startConformanceServer(): Promise<TestApiServer> {
  return startTestApiServer({ crds: [DEFINITIONS] });
}

let played = 0;

/** Runs a scenario in a new namespace, and returns its normalized outcomes. */
export async function playNormalised(server: TestApiServer, scenario: Scenario): Promise<StepOutcome[]> {
  const namespace = `space-${++played}-of-scenario`;
  return normaliseOutcomes(await playScenario(server, scenario, namespace), namespace);
}
