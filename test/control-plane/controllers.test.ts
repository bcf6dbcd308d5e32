import { startControlPlane } from "../support/machine/control-plane.js";
import { declareGarbageCollectionLaws } from "../support/laws/garbage-collection.js";
import { declareNamespaceLaws } from "../support/laws/namespaces.js";
import { shared, suite } from "../support/suite.js";

suite("kube-controller-manager", (test) => {
  const cluster = shared(() => startControlPlane({ controllers: true }));
  declareGarbageCollectionLaws(test, cluster);
  declareNamespaceLaws(test, cluster);
});
