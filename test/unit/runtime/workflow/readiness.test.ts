// Rows are those of kubectl's own tests of `rollout status` where there are any, told in our words.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { isReady } from "#runtime/workflow/conditions/readiness.js";
import { assert, suite } from "../../../support/suite.js";

type Row = [
  title: string,
  kind: string,
  live: { generation?: number; spec?: object; status?: object },
  isReady: boolean,
];

const seen = { observedGeneration: 2 };
const yes = (type: string, rest: object = {}) => ({ conditions: [{ type, status: "True", ...rest }] });
const no = (type: string) => ({ conditions: [{ type, status: "False" }] });

const rows: Row[] = [
  // Deployments
  ["nobody has looked at it yet", "apps/v1/Deployment", { spec: { replicas: 1 }, status: {} }, false],
  [
    "the status is older than the spec",
    "apps/v1/Deployment",
    {
      generation: 3,
      spec: { replicas: 1 },
      status: { ...seen, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
    },
    false,
  ],
  [
    "all are updated and available",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 2, availableReplicas: 2 } },
    true,
  ],
  [
    "some are not updated",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 1, availableReplicas: 2 } },
    false,
  ],
  [
    "old ones are still there",
    "apps/v1/Deployment",
    { spec: { replicas: 1 }, status: { ...seen, replicas: 2, updatedReplicas: 1, availableReplicas: 2 } },
    false,
  ],
  [
    "some are not available",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 2, availableReplicas: 1 } },
    false,
  ],
  ["one replica is meant where none is stated", "apps/v1/Deployment", { spec: {}, status: { ...seen } }, false],
  ["none are wanted", "apps/v1/Deployment", { spec: { replicas: 0 }, status: { ...seen } }, true],
  // StatefulSets
  [
    "all are ready and updated",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 3, updatedReplicas: 3 } },
    true,
  ],
  [
    "some are not ready",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 2, updatedReplicas: 3 } },
    false,
  ],
  [
    "some are of the revision before",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3 },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    false,
  ],
  [
    "there is one revision",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 3, currentRevision: "b", updateRevision: "b" } },
    true,
  ],
  [
    "only those behind the partition are updated",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    true,
  ],
  [
    "not even those behind the partition are updated",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1 },
    },
    false,
  ],
  [
    "pods are updated when somebody deletes them",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 1, updateStrategy: { type: "OnDelete" } },
      status: { ...seen, readyReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    true,
  ],
  // DaemonSets
  [
    "every node has one",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 } },
    true,
  ],
  [
    "some are not updated",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2 } },
    false,
  ],
  [
    "some are not available",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1 } },
    false,
  ],
  [
    "pods are updated when somebody deletes them",
    "apps/v1/DaemonSet",
    {
      spec: { updateStrategy: { type: "OnDelete" } },
      status: { ...seen, desiredNumberScheduled: 1, numberAvailable: 1 },
    },
    true,
  ],
  // ReplicaSets and ReplicationControllers
  ["all are ready", "apps/v1/ReplicaSet", { spec: { replicas: 2 }, status: { ...seen, readyReplicas: 2 } }, true],
  [
    "some are not ready",
    "v1/ReplicationController",
    { spec: { replicas: 2 }, status: { ...seen, readyReplicas: 1 } },
    false,
  ],
  // Jobs and Pods
  ["it is complete", "batch/v1/Job", { status: yes("Complete") }, true],
  ["it failed", "batch/v1/Job", { status: yes("Failed") }, false],
  ["it runs", "batch/v1/Job", { status: {} }, false],
  ["it is ready", "v1/Pod", { status: { phase: "Running", ...yes("Ready") } }, true],
  ["it runs without being ready", "v1/Pod", { status: { phase: "Running", ...no("Ready") } }, false],
  ["it succeeded", "v1/Pod", { status: { phase: "Succeeded", ...no("Ready") } }, true],
  // Storage, networks and the rest
  ["it is bound", "v1/PersistentVolumeClaim", { status: { phase: "Bound" } }, true],
  ["it is pending", "v1/PersistentVolumeClaim", { status: { phase: "Pending" } }, false],
  ["it is available", "v1/PersistentVolume", { status: { phase: "Available" } }, true],
  ["it is released", "v1/PersistentVolume", { status: { phase: "Released" } }, false],
  ["it is terminating", "v1/Namespace", { status: { phase: "Terminating" } }, false],
  ["an address inside is there at once", "v1/Service", { spec: { type: "ClusterIP" } }, true],
  [
    "the load balancer has no address",
    "v1/Service",
    { spec: { type: "LoadBalancer" }, status: { loadBalancer: {} } },
    false,
  ],
  [
    "the load balancer has an address",
    "v1/Service",
    { spec: { type: "LoadBalancer" }, status: { loadBalancer: { ingress: [{}] } } },
    true,
  ],
  [
    "too few are healthy",
    "policy/v1/PodDisruptionBudget",
    { status: { ...seen, currentHealthy: 1, desiredHealthy: 2 } },
    false,
  ],
  ["it is established", "apiextensions.k8s.io/v1/CustomResourceDefinition", { status: yes("Established") }, true],
  ["its names are taken", "apiextensions.k8s.io/v1/CustomResourceDefinition", { status: no("NamesAccepted") }, false],
  // Anything else
  ["it has nothing to say", "v1/ConfigMap", {}, true],
  ["it says that it is ready", "example.com/v1/Page", { status: yes("Ready") }, true],
  ["it says that it is not ready", "example.com/v1/Page", { status: no("Ready") }, false],
  [
    "what it says is of a spec before",
    "example.com/v1/Page",
    { generation: 3, status: yes("Ready", { observedGeneration: 2 }) },
    false,
  ],
  [
    "its status is of a spec before",
    "example.com/v1/Page",
    { generation: 3, status: { ...seen, ...yes("Ready") } },
    false,
  ],
  ["it says that it is not available", "example.com/v1/Page", { status: no("Available") }, false],
];

function liveOf(kind: string, { generation = 2, ...rest }: Row[2], metadata: object = {}): KubernetesObject {
  const slash = kind.lastIndexOf("/");
  const type = { apiVersion: kind.slice(0, slash), kind: kind.slice(slash + 1) };
  return { ...type, metadata: { name: "one", generation, ...metadata }, ...rest } as KubernetesObject;
}

suite("readiness", (test) => {
  for (const [title, kind, live, expected] of rows)
    test(`${kind} is ${expected ? "" : "not "}ready: ${title}`, () => assert.is(isReady(liveOf(kind, live)), expected));

  test("what is being deleted is not ready", () => {
    assert.ok(isReady(liveOf("v1/ConfigMap", {})));
    assert.not(isReady(liveOf("v1/ConfigMap", {}, { deletionTimestamp: "2026-05-04T09:00:00Z" })));
  });
});
