import { startSimulation } from "#apiserver/simulate/index.js";
import { borrowControlPlane } from "../support/machine/borrow-control-plane.js";
import type { ControlPlane } from "../support/machine/control-plane.js";
import { declareGarbageCollectionLaws } from "../support/laws/garbage-collection.js";
import { declareJobLaws } from "../support/laws/jobs.js";
import { declareNamespaceLaws } from "../support/laws/namespaces.js";
import { declarePodLaws } from "../support/laws/pods.js";
import { declareWorkloadLaws } from "../support/laws/workloads.js";
import { shared, suite } from "../support/suite.js";

suite("controller simulation beside kube-apiserver", (test) => {
  const cluster = shared(startSimulated);
  declareGarbageCollectionLaws(test, cluster);
  declareNamespaceLaws(test, cluster);
  declareWorkloadLaws(test, cluster);
  declarePodLaws(test, cluster);
  declareJobLaws(test, cluster);
});

async function startSimulated(): Promise<ControlPlane> {
  const plane = await borrowControlPlane();
  const simulation = await startSimulation(plane, { delayMs: 100 });
  const close = async () => {
    await simulation.close();
    await plane.close();
  };
  return { ...plane, close, [Symbol.asyncDispose]: close };
}
