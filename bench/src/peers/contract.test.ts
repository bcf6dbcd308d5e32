import { assert, suite } from "#test/support/suite.js";
import { differencesFrom, expectedChildren } from "./contract.js";

suite("contract of the peers", (test) => {
  test("what an object has besides is of no interest", () => {
    const { services } = expectedChildren(0, "one", "sample");
    const live = structuredClone(services) as { spec: { type?: string } };
    live.spec.type = "ClusterIP";
    assert.equal(differencesFrom(services, live), []);
  });

  test("what is missing, different or too much in a list is named with its path", () => {
    const { deployments } = expectedChildren(0, "one", "sample");
    const live = structuredClone(deployments) as never as {
      metadata: { ownerReferences: { controller?: boolean }[] };
      spec: { replicas: number; template: { spec: { volumes: object[] } } };
    };
    delete live.metadata.ownerReferences[0]!.controller;
    live.spec.replicas = 2;
    live.spec.template.spec.volumes.push({});
    assert.equal(differencesFrom(deployments, live), [
      "metadata.ownerReferences.0.controller is undefined, not true",
      "spec.replicas is 2, not 1",
      "spec.template.spec.volumes has 2 elements, not 1",
    ]);
  });

  test("an object that is absent is different as a whole", () => {
    assert.equal(differencesFrom({ spec: { replicas: 1 } }, { spec: null }), ["spec is null"]);
  });
});
