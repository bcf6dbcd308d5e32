// When an object does what it is for, as `kubectl rollout status` and `kubectl wait` judge it (kubectl 1.36, polymorphichelpers).
import type { KubernetesObject, StatusCondition } from "../../base/kubernetes-object.js";

// What is read of an object; every part may be missing.
interface Observed extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly type?: string;
    readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: { readonly partition?: number } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly currentRevision?: string;
    readonly updateRevision?: string;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
    readonly currentHealthy?: number;
    readonly desiredHealthy?: number;
    readonly phase?: string;
    readonly loadBalancer?: { readonly ingress?: readonly unknown[] };
    readonly conditions?: readonly StatusCondition[];
  };
}

/** Says what is missing; undefined if nothing is. */
type Judge = (live: Observed) => string | undefined;

const JUDGES: { readonly [kind: string]: Judge } = {
  "apps/v1/Deployment": (live) => stalenessOf(live) ?? rolloutOf(live),
  "apps/v1/StatefulSet": (live) => stalenessOf(live) ?? readyReplicasOf(live) ?? updateOf(live),
  "apps/v1/ReplicaSet": (live) => stalenessOf(live) ?? readyReplicasOf(live),
  "v1/ReplicationController": (live) => stalenessOf(live) ?? readyReplicasOf(live),
  "apps/v1/DaemonSet": (live) => stalenessOf(live) ?? podsOf(live),
  "batch/v1/Job": jobOf,
  "v1/Pod": (live) => (live.status?.phase === "Succeeded" ? undefined : trueOf(live, "Ready")),
  // A Pod may use a pending claim, and with WaitForFirstConsumer the claim is bound because one does.
  "v1/PersistentVolumeClaim": (live) => phaseOf(live, ["Bound", "Pending"]),
  "v1/PersistentVolume": (live) => phaseOf(live, ["Bound", "Available"]),
  "v1/Namespace": (live) => phaseOf(live, ["Active"]),
  "v1/Service": ({ spec, status }) =>
    spec?.type !== "LoadBalancer" || (status?.loadBalancer?.ingress?.length ?? 0) > 0
      ? undefined
      : "its load balancer has no address",
  "policy/v1/PodDisruptionBudget": (live) =>
    stalenessOf(live) ?? countOf(live.status?.currentHealthy, live.status?.desiredHealthy ?? 0, "pods healthy"),
  "apiextensions.k8s.io/v1/CustomResourceDefinition": (live) => trueOf(live, "Established"),
};

/** Says what a live object lacks to be ready, such as "1 of 3 replicas updated". A status that is older than the spec does not count. */
export function missingForReady(live: KubernetesObject): string | undefined {
  if (live.metadata.deletionTimestamp !== undefined) return "it is being deleted";
  const judge = JUDGES[`${live.apiVersion}/${live.kind}`] ?? missingByItsConditions;
  return judge(live);
}

/** Says what a claim or a volume lacks to be bound. */
export function missingForBound(live: KubernetesObject): string | undefined {
  if (live.metadata.deletionTimestamp !== undefined) return "it is being deleted";
  const missing = phaseOf(live, ["Bound"]);
  const waits = missing === undefined ? undefined : waitOfClaim(live);
  return waits === undefined ? missing : `${missing}: ${waits}`;
}

/** Says what a pending PersistentVolumeClaim waits for; undefined for any other object. */
export function waitOfClaim(live: KubernetesObject): string | undefined {
  const { apiVersion, kind, metadata, spec = {}, status } = live as Claim;
  if (apiVersion !== "v1" || kind !== "PersistentVolumeClaim" || status?.phase !== "Pending") return undefined;
  const { annotations = {} } = metadata;
  const provisioner = PROVISIONER.map((name) => annotations[name]).find((each) => each !== undefined);
  const node = annotations["volume.kubernetes.io/selected-node"];
  const { storageClassName, volumeName } = spec;
  if (volumeName) return `it waits for PersistentVolume ${volumeName}`;
  if (provisioner !== undefined)
    return `it waits for the provisioner ${provisioner}${node === undefined ? "" : ` (a Pod on node ${node} uses it)`}`;
  if (storageClassName === undefined) return "it waits for a default StorageClass, or for a PersistentVolume that fits";
  if (storageClassName === "") return "it waits for a PersistentVolume that fits";
  return `it waits for a volume of StorageClass ${storageClassName}, or for the first Pod that uses it (volumeBindingMode: WaitForFirstConsumer)`;
}

const PROVISIONER = ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];

interface Claim extends KubernetesObject {
  readonly spec?: { readonly storageClassName?: string; readonly volumeName?: string };
  readonly status?: { readonly phase?: string };
}

// An object that reports Ready or Available has to report it as true. Any other object is ready as soon as it exists.
function missingByItsConditions(live: Observed): string | undefined {
  const { observedGeneration, conditions = [] } = live.status ?? {};
  if (observedGeneration !== undefined && observedGeneration < (live.metadata.generation ?? 0)) return STALE;
  const telling = conditions.filter(({ type }) => type === "Ready" || type === "Available");
  return telling.map(({ type }) => trueOf(live, type)).find((missing) => missing !== undefined);
}

const STALE = "its status is older than its spec";

function stalenessOf({ metadata, status }: Observed): string | undefined {
  const observed = status?.observedGeneration;
  return observed !== undefined && observed >= (metadata.generation ?? 0) ? undefined : STALE;
}

function rolloutOf({ spec, status }: Observed): string | undefined {
  const wanted = spec?.replicas ?? 1;
  const { updatedReplicas = 0, availableReplicas, replicas = 0 } = status ?? {};
  const old = replicas - updatedReplicas;
  return (
    countOf(updatedReplicas, wanted, "replicas updated") ??
    (old > 0 ? `${old} old ${old === 1 ? "replica" : "replicas"} still there` : undefined) ??
    countOf(availableReplicas, wanted, "replicas available")
  );
}

function updateOf({ spec, status }: Observed): string | undefined {
  const { updateStrategy, replicas = 1 } = spec ?? {};
  const { updatedReplicas, currentRevision, updateRevision } = status ?? {};
  // Pods are updated when somebody deletes them.
  if (updateStrategy?.type === "OnDelete") return undefined;
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  // Equal revisions tell of an update that the numbers do not show yet.
  const isUpdated = partition === 0 && updateRevision !== undefined && updateRevision === currentRevision;
  return isUpdated ? undefined : countOf(updatedReplicas, replicas - partition, "replicas updated");
}

function podsOf({ spec, status }: Observed): string | undefined {
  const { desiredNumberScheduled = 0, updatedNumberScheduled, numberAvailable } = status ?? {};
  const isOnDelete = spec?.updateStrategy?.type === "OnDelete";
  return (
    (isOnDelete ? undefined : countOf(updatedNumberScheduled, desiredNumberScheduled, "pods updated")) ??
    countOf(numberAvailable, desiredNumberScheduled, "pods available")
  );
}

function readyReplicasOf({ spec, status }: Observed): string | undefined {
  return countOf(status?.readyReplicas, spec?.replicas ?? 1, "replicas ready");
}

function countOf(have = 0, wanted: number, what: string): string | undefined {
  return have >= wanted ? undefined : `${have} of ${wanted} ${what}`;
}

function phaseOf({ status }: Observed, phases: readonly string[]): string | undefined {
  const phase = status?.phase;
  if (phase === undefined) return "it has no phase yet";
  return phases.includes(phase) ? undefined : `its phase is ${phase}`;
}

function jobOf(live: Observed): string | undefined {
  const failure = live.status?.conditions?.find(({ type, status }) => type === "Failed" && status === "True");
  const missing = trueOf(live, "Complete");
  if (missing === undefined || failure === undefined) return missing;
  return `it failed${causeOf(failure)}`;
}

function trueOf(live: Observed, type: string): string | undefined {
  return missingCondition(live, { type, status: "True" });
}

/** Says what is wrong with a condition of a live object; undefined if it has this status, and is not older than the spec. */
export function missingCondition(
  live: Observed,
  { type, status }: Pick<StatusCondition, "type" | "status">,
): string | undefined {
  const { generation = 0 } = live.metadata;
  const found = live.status?.conditions?.filter((each) => each.type === type) ?? [];
  if (found.some((each) => each.status === status && (each.observedGeneration ?? generation) >= generation))
    return undefined;
  const [condition] = found;
  if (condition === undefined) return `it has no condition ${type}`;
  if (condition.status === status) return `its condition ${type} is older than its spec`;
  return `its condition ${type} is ${condition.status}${causeOf(condition)}`;
}

function causeOf({ message, reason }: StatusCondition): string {
  return message || reason ? `: ${message || reason}` : "";
}
