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

type Judge = (live: Observed) => boolean;

const JUDGES: { readonly [kind: string]: Judge } = {
  "apps/v1/Deployment": (live) => isObserved(live) && isRolledOut(live),
  "apps/v1/StatefulSet": (live) => isObserved(live) && isStatefulSetReady(live),
  "apps/v1/ReplicaSet": (live) => isObserved(live) && hasReadyReplicas(live),
  "v1/ReplicationController": (live) => isObserved(live) && hasReadyReplicas(live),
  "apps/v1/DaemonSet": (live) => isObserved(live) && isDaemonSetReady(live),
  "batch/v1/Job": (live) => hasCondition(live, "Complete"),
  "v1/Pod": (live) => hasCondition(live, "Ready") || live.status?.phase === "Succeeded",
  "v1/PersistentVolumeClaim": ({ status }) => status?.phase === "Bound",
  "v1/PersistentVolume": ({ status }) => status?.phase === "Bound" || status?.phase === "Available",
  "v1/Namespace": ({ status }) => status?.phase === "Active",
  "v1/Service": ({ spec, status }) => spec?.type !== "LoadBalancer" || (status?.loadBalancer?.ingress?.length ?? 0) > 0,
  "policy/v1/PodDisruptionBudget": (live) =>
    isObserved(live) && (live.status?.currentHealthy ?? 0) >= (live.status?.desiredHealthy ?? 0),
  "apiextensions.k8s.io/v1/CustomResourceDefinition": (live) => hasCondition(live, "Established"),
};

/** Tells whether a live object does what it is for; a status that is older than the spec does not count, nor does an object that is on its way out. */
export function isReady(live: KubernetesObject): boolean {
  if (live.metadata.deletionTimestamp !== undefined) return false;
  const judge = JUDGES[`${live.apiVersion}/${live.kind}`];
  return judge === undefined ? hasNothingAgainstIt(live) : judge(live);
}

// Whatever says of itself that it is ready, or available, has to say that it is; anything else is ready as soon as it is there.
function hasNothingAgainstIt(live: Observed): boolean {
  const { observedGeneration, conditions = [] } = live.status ?? {};
  const isCurrent = observedGeneration === undefined || observedGeneration >= (live.metadata.generation ?? 0);
  const telling = conditions.filter(({ type }) => type === "Ready" || type === "Available");
  return isCurrent && telling.every((condition) => isTrueAndCurrent(condition, live));
}

function isObserved({ metadata, status }: Observed): boolean {
  return status?.observedGeneration !== undefined && status.observedGeneration >= (metadata.generation ?? 0);
}

function isRolledOut({ spec, status }: Observed): boolean {
  const wanted = spec?.replicas ?? 1;
  const { updatedReplicas = 0, availableReplicas = 0, replicas = 0 } = status ?? {};
  // Old replicas may still be there.
  return updatedReplicas >= wanted && replicas <= updatedReplicas && availableReplicas >= wanted;
}

function isStatefulSetReady(live: Observed): boolean {
  if (!hasReadyReplicas(live)) return false;
  const { updateStrategy, replicas = 1 } = live.spec ?? {};
  const { updatedReplicas = 0, currentRevision, updateRevision } = live.status ?? {};
  // Pods are updated when somebody deletes them.
  if (updateStrategy?.type === "OnDelete") return true;
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  if (partition > 0) return updatedReplicas >= replicas - partition;
  // What is not counted yet shows in the revisions.
  return updatedReplicas >= replicas || (updateRevision !== undefined && updateRevision === currentRevision);
}

function isDaemonSetReady({ spec, status }: Observed): boolean {
  const { desiredNumberScheduled = 0, updatedNumberScheduled = 0, numberAvailable = 0 } = status ?? {};
  const isUpdated = spec?.updateStrategy?.type === "OnDelete" || updatedNumberScheduled >= desiredNumberScheduled;
  return isUpdated && numberAvailable >= desiredNumberScheduled;
}

function hasReadyReplicas({ spec, status }: Observed): boolean {
  return (status?.readyReplicas ?? 0) >= (spec?.replicas ?? 1);
}

function hasCondition(live: Observed, type: string): boolean {
  return (
    live.status?.conditions?.some((condition) => condition.type === type && isTrueAndCurrent(condition, live)) ?? false
  );
}

function isTrueAndCurrent(condition: StatusCondition, live: Observed): boolean {
  return condition.status === "True" && isOfGeneration(condition, live);
}

/** Tells whether a condition is about the spec that an object has now, as far as it says. */
export function isOfGeneration({ observedGeneration }: StatusCondition, { metadata }: KubernetesObject): boolean {
  return observedGeneration === undefined || observedGeneration >= (metadata.generation ?? 0);
}
