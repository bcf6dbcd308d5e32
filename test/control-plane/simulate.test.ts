import { startSimulation } from "#apiserver/simulate/index.js";
import { startControlPlane, type ControlPlane } from "../support/control-plane.js";
import { declareGarbageCollectionLaws, declareNamespaceLaws } from "../support/simulation-laws.js";
import { shared, suite } from "../support/suite.js";

suite("simulated controllers beside a real API server", (test) => {
  const cluster = shared(startSimulated);
  declareGarbageCollectionLaws(test, cluster);
  declareNamespaceLaws(test, cluster);
});

async function startSimulated(): Promise<ControlPlane> {
  const plane = await startControlPlane();
  const simulation = await startSimulation(plane, { delayMs: 100 });
  const close = async () => {
    await simulation.close();
    await plane.close();
  };
  return { ...plane, close, [Symbol.asyncDispose]: close };
}
