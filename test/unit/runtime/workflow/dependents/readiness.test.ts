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
    "no observedGeneration",
    "apps/v1/Deployment",
    { spec: { replicas: 1 }, status: {} },
    "its status is older than its spec",
  ],
  [
    "an observedGeneration older than the spec",
    "apps/v1/Deployment",
    {
      generation: 3,
      spec: { replicas: 1 },
      status: { ...seen, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
    },
    "its status is older than its spec",
  ],
  [
    "all replicas updated and available",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 2, availableReplicas: 2 } },
    READY,
  ],
  [
    "some replicas not updated",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 1, availableReplicas: 2 } },
    "1 of 2 replicas updated",
  ],
  [
    "old replicas remain",
    "apps/v1/Deployment",
    { spec: { replicas: 1 }, status: { ...seen, replicas: 2, updatedReplicas: 1, availableReplicas: 2 } },
    "1 old replica still there",
  ],
  [
    "some replicas not available",
    "apps/v1/Deployment",
    { spec: { replicas: 2 }, status: { ...seen, replicas: 2, updatedReplicas: 2, availableReplicas: 1 } },
    "1 of 2 replicas available",
  ],
  ["1 replica by default", "apps/v1/Deployment", { spec: {}, status: { ...seen } }, "0 of 1 replicas updated"],
  ["0 replicas", "apps/v1/Deployment", { spec: { replicas: 0 }, status: { ...seen } }, READY],
  // StatefulSets
  [
    "all replicas ready and updated",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 3, updatedReplicas: 3 } },
    READY,
  ],
  [
    "some replicas not ready",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 2, updatedReplicas: 3 } },
    "2 of 3 replicas ready",
  ],
  [
    "some replicas of the previous revision",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3 },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    "1 of 3 replicas updated",
  ],
  [
    "a single revision",
    "apps/v1/StatefulSet",
    { spec: { replicas: 3 }, status: { ...seen, readyReplicas: 3, currentRevision: "b", updateRevision: "b" } },
    READY,
  ],
  [
    "replicas from the partition updated",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    READY,
  ],
  [
    "replicas from the partition not updated",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
      status: { ...seen, readyReplicas: 3, updatedReplicas: 1 },
    },
    "1 of 2 replicas updated",
  ],
  [
    "updateStrategy OnDelete",
    "apps/v1/StatefulSet",
    {
      spec: { replicas: 1, updateStrategy: { type: "OnDelete" } },
      status: { ...seen, readyReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    READY,
  ],
  // DaemonSets
  [
    "a pod on each node",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 } },
    READY,
  ],
  [
    "some pods not updated",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2 } },
    "1 of 2 pods updated",
  ],
  [
    "some pods not available",
    "apps/v1/DaemonSet",
    { status: { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1 } },
    "1 of 2 pods available",
  ],
  [
    "updateStrategy OnDelete",
    "apps/v1/DaemonSet",
    {
      spec: { updateStrategy: { type: "OnDelete" } },
      status: { ...seen, desiredNumberScheduled: 1, numberAvailable: 1 },
    },
    READY,
  ],
  // ReplicaSets and ReplicationControllers
  ["all replicas ready", "apps/v1/ReplicaSet", { spec: { replicas: 2 }, status: { ...seen, readyReplicas: 2 } }, READY],
  [
    "some replicas not ready",
    "v1/ReplicationController",
    { spec: { replicas: 2 }, status: { ...seen, readyReplicas: 1 } },
    "1 of 2 replicas ready",
  ],
  // Jobs and Pods
  ["condition Complete", "batch/v1/Job", { status: yes("Complete") }, READY],
  ["condition Failed", "batch/v1/Job", { status: yes("Failed") }, "it failed"],
  ["no condition Complete", "batch/v1/Job", { status: {} }, "it has no condition Complete"],
  ["condition Ready", "v1/Pod", { status: { phase: "Running", ...yes("Ready") } }, READY],
  [
    "running, but condition Ready is False",
    "v1/Pod",
    { status: { phase: "Running", ...no("Ready") } },
    "its condition Ready is False",
  ],
  ["phase Succeeded", "v1/Pod", { status: { phase: "Succeeded", ...no("Ready") } }, READY],
  // Storage, networks and the rest
  ["phase Bound", "v1/PersistentVolumeClaim", { status: { phase: "Bound" } }, READY],
  ["phase Pending, as a Pod may already use it", "v1/PersistentVolumeClaim", { status: { phase: "Pending" } }, READY],
  ["no phase", "v1/PersistentVolumeClaim", {}, "it has no phase yet"],
  ["phase Lost", "v1/PersistentVolumeClaim", { status: { phase: "Lost" } }, "its phase is Lost"],
  ["phase Available", "v1/PersistentVolume", { status: { phase: "Available" } }, READY],
  ["phase Released", "v1/PersistentVolume", { status: { phase: "Released" } }, "its phase is Released"],
  ["phase Terminating", "v1/Namespace", { status: { phase: "Terminating" } }, "its phase is Terminating"],
  ["type ClusterIP", "v1/Service", { spec: { type: "ClusterIP" } }, READY],
  [
    "type LoadBalancer without an address",
    "v1/Service",
    { spec: { type: "LoadBalancer" }, status: { loadBalancer: {} } },
    "its load balancer has no address",
  ],
  [
    "type LoadBalancer with an address",
    "v1/Service",
    { spec: { type: "LoadBalancer" }, status: { loadBalancer: { ingress: [{}] } } },
    READY,
  ],
  [
    "too few healthy pods",
    "policy/v1/PodDisruptionBudget",
    { status: { ...seen, currentHealthy: 1, desiredHealthy: 2 } },
    "1 of 2 pods healthy",
  ],
  ["condition Established", "apiextensions.k8s.io/v1/CustomResourceDefinition", { status: yes("Established") }, READY],
  [
    "condition NamesAccepted is False",
    "apiextensions.k8s.io/v1/CustomResourceDefinition",
    { status: no("NamesAccepted") },
    "it has no condition Established",
  ],
  // Anything else
  ["a kind without status", "v1/ConfigMap", {}, READY],
  ["condition Ready", "example.com/v1/Page", { status: yes("Ready") }, READY],
  ["condition Ready is False", "example.com/v1/Page", { status: no("Ready") }, "its condition Ready is False"],
  [
    "condition Ready with an older observedGeneration",
    "example.com/v1/Page",
    { generation: 3, status: yes("Ready", { observedGeneration: 2 }) },
    "its condition Ready is older than its spec",
  ],
  [
    "a status with an older observedGeneration",
    "example.com/v1/Page",
    { generation: 3, status: { ...seen, ...yes("Ready") } },
    "its status is older than its spec",
  ],
  [
    "condition Available is False",
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
    test(`reports for a pending claim: ${text}`, () => {
      const live = liveOf("v1/PersistentVolumeClaim", { spec, status: { phase: "Pending" } }, { annotations });
      const detail = `PersistentVolumeClaim one is not bound: its phase is Pending: ${text}`;
      assert.equal(ask(bound, live), { isMet: false, detail });
      assert.equal(ask(ready, live), { isMet: true, detail: text });
    });

  test("is met for a bound claim or volume, but not for a lost or available one", () => {
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

suite("ready", (test) => {
  for (const [title, kind, live, missing] of rows)
    test(`is ${missing === READY ? "" : "not "}met for ${kind}: ${title}`, () =>
      assert.is(missingForReady(liveOf(kind, live)), missing));

  test("is not met for an object that is being deleted", () => {
    assert.is(missingForReady(liveOf("v1/ConfigMap", {})), undefined);
    assert.is(
      missingForReady(liveOf("v1/ConfigMap", {}, { deletionTimestamp: "2026-05-04T09:00:00Z" })),
      "it is being deleted",
    );
  });
});
