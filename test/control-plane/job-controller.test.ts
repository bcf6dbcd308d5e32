// The laws of Jobs that our simulation obeys, obeyed by the job controller of kube-controller-manager; scheduler and kubelet are ours.
import { startSimulation } from "#apiserver/simulate/index.js";
import { declareJobLaws } from "../support/laws/jobs.js";
import { startControlPlane, type ControlPlane } from "../support/machine/control-plane.js";
import { shared, suite } from "../support/suite.js";

suite("job controller of kube-controller-manager", (test) => {
  const cluster = shared(startWithJobController);
  declareJobLaws(test, cluster);
});

async function startWithJobController(): Promise<ControlPlane> {
  const plane = await startControlPlane({ controllerNames: ["job-controller"] });
  const simulation = await startSimulation(plane, { only: ["pods", "namespace-contents"], delayMs: 100 });
  const close = async () => {
    await simulation.close();
    await plane.close();
  };
  return { ...plane, close, [Symbol.asyncDispose]: close };
}
