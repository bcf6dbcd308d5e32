import { assert, suite } from "#test/support/suite.js";
import { differencesFrom, expectedChildren } from "./contract.js";

suite("peer contract", (test) => {
  test("ignores additional fields of an object", () => {
    const { services } = expectedChildren(0, "one", "sample");
    const live = structuredClone(services) as { spec: { type?: string } };
    live.spec.type = "ClusterIP";
    assert.equal(differencesFrom(services, live), []);
  });

  test("names the path of missing, different and surplus values", () => {
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

  test("reports a missing object once", () => {
    assert.equal(differencesFrom({ spec: { replicas: 1 } }, { spec: null }), ["spec is null"]);
  });
});
