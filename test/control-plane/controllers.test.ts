import { startControlPlane } from "../support/control-plane.js";
import { declareGarbageCollectionLaws, declareNamespaceLaws } from "../support/simulation-laws.js";
import { shared, suite } from "../support/suite.js";

suite("kube-controller-manager", (test) => {
  const cluster = shared(() => startControlPlane({ controllers: true }));
  declareGarbageCollectionLaws(test, cluster);
  declareNamespaceLaws(test, cluster);
});
