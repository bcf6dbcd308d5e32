import fc from "../../../support/fast-check.js";
import {
  type Deployment,
  type ReplicaSet,
  planRollout,
  planScaling,
  rolloutLimits,
} from "#apiserver/simulate/workloads/deployment.js";
import { assert, suite } from "../../../support/suite.js";

const limits = fc.oneof(
  fc.nat(5),
  fc.integer({ min: 0, max: 100 }).map((percent) => `${percent}%`),
);

function deploymentOf(replicas: number, rollingUpdate: object): Deployment {
  const metadata = { name: "web", uid: "d", resourceVersion: "1" };
  return {
    metadata,
    spec: { replicas, strategy: { type: "RollingUpdate", rollingUpdate }, template: templateOf("new") },
  };
}

const templateOf = (image: string) => ({ metadata: { labels: {} }, spec: { containers: [{ name: "c", image }] } });

function setOf(index: number, image: string, size: { replicas: number; available: number }): ReplicaSet {
  const { replicas, available } = size;
  const creationTimestamp = `2026-01-01T00:00:0${index}Z`;
  return {
    metadata: { name: image, uid: image, resourceVersion: "1", creationTimestamp },
    spec: { replicas, template: templateOf(image) },
    status: { replicas, availableReplicas: available, readyReplicas: available },
  };
}

const total = (sets: ReplicaSet[]) => sets.reduce((sum, { spec }) => sum + (spec.replicas ?? 0), 0);
const available = (sets: ReplicaSet[]) => sets.reduce((sum, { status }) => sum + (status?.availableReplicas ?? 0), 0);

function applied(sets: ReplicaSet[], plan: ReturnType<typeof planRollout>): ReplicaSet[] {
  return sets.map((set) => {
    const replicas = plan.find((step) => step.set === set)?.replicas ?? set.spec.replicas ?? 0;
    const left = Math.min(set.status?.availableReplicas ?? 0, replicas);
    return { ...set, spec: { ...set.spec, replicas }, status: { ...set.status, replicas, availableReplicas: left } };
  });
}

suite("rollout of a Deployment", (test) => {
  test("completes within the limits of maxSurge and maxUnavailable", () => {
    const sizes = fc.record({ replicas: fc.integer({ min: 1, max: 12 }), maxSurge: limits, maxUnavailable: limits });
    fc.assert(
      fc.property(sizes, ({ replicas, ...rollingUpdate }) => {
        const deployment = deploymentOf(replicas, rollingUpdate);
        const { maxSurge, maxUnavailable } = rolloutLimits(deployment);
        let sets = [setOf(1, "old", { replicas, available: replicas }), setOf(2, "new", { replicas: 0, available: 0 })];
        for (let step = 0; step < 4 * replicas + 4; step++) {
          sets = applied(sets, planRollout(deployment, sets));
          assert.ok(total(sets) <= replicas + maxSurge);
          assert.ok(available(sets) >= replicas - maxUnavailable);
          // One Pod becomes available at a time.
          const starting = sets.find(({ spec, status }) => (status?.availableReplicas ?? 0) < (spec.replicas ?? 0));
          if (starting?.status !== undefined) {
            const next = (starting.status.availableReplicas ?? 0) + 1;
            sets = sets.map((set) =>
              set === starting ? { ...set, status: { ...set.status, availableReplicas: next } } : set,
            );
          }
        }
        assert.equal(
          sets.map(({ spec }) => spec.replicas),
          [0, replicas],
        );
      }),
    );
  });

  test("scales ReplicaSets in proportion to their size", () => {
    const deployment = deploymentOf(20, { maxSurge: 0, maxUnavailable: 2 });
    const annotations = { "deployment.kubernetes.io/max-replicas": "10" };
    const sets = [setOf(1, "old", { replicas: 8, available: 8 }), setOf(2, "new", { replicas: 2, available: 1 })].map(
      (set) => ({ ...set, metadata: { ...set.metadata, annotations } }),
    );
    assert.equal(
      planScaling(deployment, sets).map(({ set, replicas }) => [set.metadata.name, replicas]),
      [
        ["old", 16],
        ["new", 4],
      ],
    );
  });
});
