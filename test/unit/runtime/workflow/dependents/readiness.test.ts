// Rows are those of kubectl's own tests of `rollout status` where there are any, told in our words.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { bound, missingForReady, ready } from "#runtime/workflow/conditions.js";
import { assert, suite } from "../../../../support/suite.js";

type Row = [
  title: string,
  kind: string,
  live: { generation?: number; spec?: object; status?: object },
  missing: string | undefined,
];

const READY = undefined;
const seen = { observedGeneration: 2 };
const yes = (type: string, rest: object = {}) => ({ conditions: [{ type, status: "True", ...rest }] });
const no = (type: string) => ({ conditions: [{ type, status: "False" }] });

const rows: Row[] = [
  // Deployments
  [
    "nobody has looked at it yet",
    "apps/v1/Deployment",
    { spec: { replicas: 1 }, status: {} },
    "its status is older than its spec",
  ],
  [
    "the status is older than the spec",
    "apps/v1/Deployment",
    {
      generation: 3,
      spec: { replicas: 1 },
      status: { ...seen, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
    },
    "its status is older than its spec",
  ],
  [
    "all are updated and available",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 2, availableReplicas: 2 } },
    READY,
  ],
  [
    "some are not updated",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 1, availableReplicas: 2 } },
    "1 of 2 replicas updated",
  ],
  [
    "old ones are still there",
    "apps/v1/Deployment",
    { spec: { replicas: 1 }, status: { ...seen, replicas: 2, updatedReplicas: 1, availableReplicas: 2 } },
    "1 old replica still there",
  ],
  [
    "some are not available",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 2, availableReplicas: 1 } },
    "1 of 2 replicas available",
  ],
  [
    "one replica is meant where none is stated",
    "apps/v1/Deployment",
    { spec: {}, status: { ...seen } },
    "0 of 1 replicas updated",
  ],
  ["none are wanted", "apps/v1/Deployment", { spec: { replicas: 0 }, status: { ...seen } }, READY],
  // StatefulSets
  [
    "all are ready and updated",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 3, updatedReplicas: 3 } },
    READY,
  ],
  [
    "some are not ready",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 2, updatedReplicas: 3 } },
    "2 of 3 replicas ready",
  ],
  [
    "some are of the revision before",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3 },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    "1 of 3 replicas updated",
  ],
  [
    "there is one revision",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 3, currentRevision: "b", updateRevision: "b" } },
    READY,
  ],
  [
    "only those behind the partition are updated",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    READY,
  ],
  [
    "not even those behind the partition are updated",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1 },
    },
    "1 of 2 replicas updated",
  ],
  [
    "pods are updated when somebody deletes them",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 1, updateStrategy: { type: "OnDelete" } },
      status: { ...seen, readyReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    READY,
  ],
  // DaemonSets
  [
    "every node has one",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 } },
    READY,
  ],
  [
    "some are not updated",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2 } },
    "1 of 2 pods updated",
  ],
  [
    "some are not available",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1 } },
    "1 of 2 pods available",
  ],
  [
    "pods are updated when somebody deletes them",
    "apps/v1/DaemonSet",
    {
      spec: { updateStrategy: { type: "OnDelete" } },
      status: { ...seen, desiredNumberScheduled: 1, numberAvailable: 1 },
    },
    READY,
  ],
  // ReplicaSets and ReplicationControllers
  ["all are ready", "apps/v1/ReplicaSet", { spec: { replicas: 2 }, status: { ...seen, readyReplicas: 2 } }, READY],
  [
    "some are not ready",
    "v1/ReplicationController",
    { spec: { replicas: 2 }, status: { ...seen, readyReplicas: 1 } },
    "1 of 2 replicas ready",
  ],
  // Jobs and Pods
  ["it is complete", "batch/v1/Job", { status: yes("Complete") }, READY],
  ["it failed", "batch/v1/Job", { status: yes("Failed") }, "it failed"],
  ["it runs", "batch/v1/Job", { status: {} }, "it has no condition Complete"],
  ["it is ready", "v1/Pod", { status: { phase: "Running", ...yes("Ready") } }, READY],
  [
    "it runs without being ready",
    "v1/Pod",
    { status: { phase: "Running", ...no("Ready") } },
    "its condition Ready is False",
  ],
  ["it succeeded", "v1/Pod", { status: { phase: "Succeeded", ...no("Ready") } }, READY],
  // Storage, networks and the rest
  ["it is bound", "v1/PersistentVolumeClaim", { status: { phase: "Bound" } }, READY],
  ["a Pod may use it while it is pending", "v1/PersistentVolumeClaim", { status: { phase: "Pending" } }, READY],
  ["it is new", "v1/PersistentVolumeClaim", {}, "it has no phase yet"],
  ["it is lost", "v1/PersistentVolumeClaim", { status: { phase: "Lost" } }, "its phase is Lost"],
  ["it is available", "v1/PersistentVolume", { status: { phase: "Available" } }, READY],
  ["it is released", "v1/PersistentVolume", { status: { phase: "Released" } }, "its phase is Released"],
  ["it is terminating", "v1/Namespace", { status: { phase: "Terminating" } }, "its phase is Terminating"],
  ["an address inside is there at once", "v1/Service", { spec: { type: "ClusterIP" } }, READY],
  [
    "the load balancer has no address",
    "v1/Service",
    { spec: { type: "LoadBalancer" }, status: { loadBalancer: {} } },
    "its load balancer has no address",
  ],
  [
    "the load balancer has an address",
    "v1/Service",
    { spec: { type: "LoadBalancer" }, status: { loadBalancer: { ingress: [{}] } } },
    READY,
  ],
  [
    "too few are healthy",
    "policy/v1/PodDisruptionBudget",
    { status: { ...seen, currentHealthy: 1, desiredHealthy: 2 } },
    "1 of 2 pods healthy",
  ],
  ["it is established", "apiextensions.k8s.io/v1/CustomResourceDefinition", { status: yes("Established") }, READY],
  [
    "its names are taken",
    "apiextensions.k8s.io/v1/CustomResourceDefinition",
    { status: no("NamesAccepted") },
    "it has no condition Established",
  ],
  // Anything else
  ["it has nothing to say", "v1/ConfigMap", {}, READY],
  ["it says that it is ready", "example.com/v1/Page", { status: yes("Ready") }, READY],
  ["it says that it is not ready", "example.com/v1/Page", { status: no("Ready") }, "its condition Ready is False"],
  [
    "what it says is of a spec before",
    "example.com/v1/Page",
    { generation: 3, status: yes("Ready", { observedGeneration: 2 }) },
    "its condition Ready is older than its spec",
  ],
  [
    "its status is of a spec before",
    "example.com/v1/Page",
    { generation: 3, status: { ...seen, ...yes("Ready") } },
    "its status is older than its spec",
  ],
  [
    "it says that it is not available",
    "example.com/v1/Page",
    { status: no("Available") },
    "its condition Available is False",
  ],
];

function liveOf(kind: string, { generation = 2, ...rest }: Row[2], metadata: object = {}): KubernetesObject {
  const slash = kind.lastIndexOf("/");
  const type = { apiVersion: kind.slice(0, slash), kind: kind.slice(slash + 1) };
  return { ...type, metadata: { name: "one", generation, ...metadata }, ...rest } as KubernetesObject;
}

/** What a pending claim waits for. */
const WAITS: readonly (readonly [spec: object, annotations: object, text: string])[] = [
  [{}, {}, "it waits for a default StorageClass, or for a PersistentVolume that fits"],
  [{ storageClassName: "" }, {}, "it waits for a PersistentVolume that fits"],
  [{ storageClassName: "", volumeName: "disk" }, {}, "it waits for PersistentVolume disk"],
  [
    { storageClassName: "fast" },
    {},
    "it waits for a volume of StorageClass fast, or for the first Pod that uses it (volumeBindingMode: WaitForFirstConsumer)",
  ],
  [
    { storageClassName: "fast" },
    { "volume.kubernetes.io/storage-provisioner": "disks.example.com" },
    "it waits for the provisioner disks.example.com",
  ],
  [
    { storageClassName: "fast" },
    {
      "volume.beta.kubernetes.io/storage-provisioner": "disks.example.com",
      "volume.kubernetes.io/selected-node": "node-1",
    },
    "it waits for the provisioner disks.example.com (a Pod on node node-1 uses it)",
  ],
];

suite("bound", (test) => {
  const ask = (condition: typeof bound, live: KubernetesObject) => condition({ live } as never);

  for (const [spec, annotations, text] of WAITS)
    test(`says of a pending claim that ${text}`, () => {
      const live = liveOf("v1/PersistentVolumeClaim", { spec, status: { phase: "Pending" } }, { annotations });
      const detail = `PersistentVolumeClaim one is not bound: its phase is Pending: ${text}`;
      assert.equal(ask(bound, live), { isMet: false, detail });
      assert.equal(ask(ready, live), { isMet: true, detail: text });
    });

  test("holds for a claim and a volume that are bound, and for nothing that is lost or only available", () => {
    for (const kind of ["PersistentVolumeClaim", "PersistentVolume"])
      assert.is(ask(bound, liveOf(`v1/${kind}`, { status: { phase: "Bound" } })), true);
    const lost = liveOf("v1/PersistentVolumeClaim", { status: { phase: "Lost" } });
    assert.equal(ask(bound, lost), {
      isMet: false,
      detail: "PersistentVolumeClaim one is not bound: its phase is Lost",
    });
    const available = liveOf("v1/PersistentVolume", { status: { phase: "Available" } });
    assert.equal(ask(bound, available), {
      isMet: false,
      detail: "PersistentVolume one is not bound: its phase is Available",
    });
  });
});

suite("readiness", (test) => {
  for (const [title, kind, live, missing] of rows)
    test(`${kind} is ${missing === READY ? "" : "not "}ready: ${title}`, () =>
      assert.is(missingForReady(liveOf(kind, live)), missing));

  test("what is being deleted is not ready", () => {
    assert.is(missingForReady(liveOf("v1/ConfigMap", {})), undefined);
    assert.is(
      missingForReady(liveOf("v1/ConfigMap", {}, { deletionTimestamp: "2026-05-04T09:00:00Z" })),
      "it is being deleted",
    );
  });
});
