import { isSame } from "../feed/kubernetes-object.js";
import type { PodTemplate } from "../pods/pod.js";
import { type Workload, type WorkloadSpec, type WorkloadStatus, templateHash } from "./workload.js";

/** The fields of a Deployment spec that the controller reads. */
interface DeploymentSpec extends WorkloadSpec {
  paused?: boolean;
  strategy?: { type?: string; rollingUpdate?: { maxUnavailable?: number | string; maxSurge?: number | string } };
  progressDeadlineSeconds?: number;
}

export type Deployment = Workload<DeploymentSpec>;

export interface ReplicaSet extends Workload {
  status?: WorkloadStatus & {
    replicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    observedGeneration?: number;
  };
}

/** Label with the hash of the Pod template. */
export const HASH = "pod-template-hash";
/** Annotation with the revision of the Pod template. */
export const REVISION = "deployment.kubernetes.io/revision";

/** Returns spec.replicas. Default: 1 */
export function replicasOf({ spec }: Pick<Deployment, "spec">): number {
  return spec.replicas ?? 1;
}

/** Returns the revision of a ReplicaSet or Deployment. */
export function revisionOf({ metadata }: Pick<Deployment, "metadata">): string {
  return metadata.annotations?.[REVISION] ?? "0";
}

/** Returns the ReplicaSet with the current template of a Deployment; the oldest if there are several. */
export function newReplicaSetOf({ spec }: Deployment, sets: ReplicaSet[]): ReplicaSet | undefined {
  const wanted = withoutHash(spec.template);
  return [...sets]
    .sort((a, b) => (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""))
    .find((set) => isSame(withoutHash(set.spec.template), wanted));
}

/** Returns the pod-template-hash of the current template, the suffix of the name of its ReplicaSet. */
export function hashOf({ spec, status }: Deployment): string {
  return templateHash(spec.template, Number(status?.["collisionCount"] ?? 0));
}

function withoutHash({ metadata = {}, spec }: PodTemplate): PodTemplate {
  const { [HASH]: _, ...labels } = metadata.labels ?? {};
  return { metadata: { ...metadata, labels }, spec };
}

/** Reports whether a ReplicaSet has all replicas of the Deployment, and all are available. */
function isSaturated(deployment: Deployment, set: ReplicaSet): boolean {
  const wanted = replicasOf(deployment);
  return replicasOf(set) === wanted && (set.status?.availableReplicas ?? 0) === wanted;
}

/** Resolves maxUnavailable and maxSurge to numbers of Pods. */
export function rolloutLimits({ spec }: Deployment): { maxUnavailable: number; maxSurge: number } {
  const replicas = spec.replicas ?? 1;
  if (spec.strategy?.type === "Recreate" || replicas === 0) return { maxUnavailable: 0, maxSurge: 0 };
  const { maxUnavailable = "25%", maxSurge = "25%" } = spec.strategy?.rollingUpdate ?? {};
  const surge = scaled(maxSurge, replicas, Math.ceil);
  const unavailable = Math.min(scaled(maxUnavailable, replicas, Math.floor), replicas);
  // If both are 0, the rollout could not make progress.
  return { maxSurge: surge, maxUnavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** Resolves an integer or a percentage of `total`. */
export function scaled(value: number | string, total: number, round: (value: number) => number): number {
  return typeof value === "number" ? value : round((total * Number.parseInt(value, 10)) / 100);
}

// Computes the next replicas of each ReplicaSet of a Deployment. Pure; follows the deployment controller of Kubernetes 1.36.

/** New replicas and annotations of a ReplicaSet. */
export interface Scaling {
  set: ReplicaSet;
  replicas: number;
  annotations?: Record<string, string>;
}

/** Builds the annotations that later reveal a scaling of the Deployment. */
export function sizeAnnotations(deployment: Deployment): Record<string, string> {
  const wanted = replicasOf(deployment);
  const surge = deployment.spec.strategy?.type === "Recreate" ? 0 : rolloutLimits(deployment).maxSurge;
  return {
    "deployment.kubernetes.io/desired-replicas": String(wanted),
    "deployment.kubernetes.io/max-replicas": String(wanted + surge),
  };
}

/** Plans the next step of a rollout. */
export function planRollout(deployment: Deployment, sets: ReplicaSet[]): Scaling[] {
  const next = newReplicaSetOf(deployment, sets);
  if (next === undefined) return [];
  const wanted = replicasOf(deployment);
  const annotations = sizeAnnotations(deployment);
  const old = sets.filter((set) => set !== next && replicasOf(set) > 0);
  if (deployment.spec.strategy?.type === "Recreate") return [{ set: next, replicas: wanted, annotations }];
  const grown = newReplicas(deployment, { next, total: sum(sets, replicasOf) });
  if (grown !== replicasOf(next)) return [{ set: next, replicas: grown, annotations }];
  return [{ set: next, replicas: grown, annotations }, ...shrinkOld(deployment, { next, old, annotations })];
}

function newReplicas(deployment: Deployment, { next, total }: { next: ReplicaSet; total: number }): number {
  const wanted = replicasOf(deployment);
  const present = replicasOf(next);
  if (present > wanted) return wanted;
  const room = wanted + rolloutLimits(deployment).maxSurge - total;
  return room <= 0 ? present : present + Math.min(room, wanted - present);
}

function shrinkOld(
  deployment: Deployment,
  { next, old, annotations }: { next: ReplicaSet; old: ReplicaSet[]; annotations: Record<string, string> },
): Scaling[] {
  const oldTotal = sum(old, replicasOf);
  if (oldTotal === 0) return [];
  const minAvailable = replicasOf(deployment) - rolloutLimits(deployment).maxUnavailable;
  const newUnavailable = replicasOf(next) - availableOf(next);
  let spare = oldTotal + replicasOf(next) - minAvailable - newUnavailable;
  if (spare <= 0) return [];
  const sizes = new Map(old.map((set) => [set, replicasOf(set)]));
  const take = (set: ReplicaSet, count: number) => sizes.set(set, (sizes.get(set) ?? 0) - count);
  const byAge = [...old].sort((a, b) =>
    (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""),
  );
  // Unhealthy replicas are scaled down first.
  for (const set of byAge) {
    const count = Math.min(spare, Math.max(0, replicasOf(set) - availableOf(set)));
    take(set, count);
    spare -= count;
  }
  let surplus = sum([...old, next], availableOf) - minAvailable;
  for (const set of byAge) {
    const count = Math.min(Math.max(0, surplus), sizes.get(set) ?? 0);
    take(set, count);
    surplus -= count;
  }
  return old.map((set) => ({ set, replicas: sizes.get(set) ?? 0, annotations }));
}

/** Plans the change of replicas after the Deployment was scaled. */
export function planScaling(deployment: Deployment, sets: ReplicaSet[]): Scaling[] {
  const wanted = replicasOf(deployment);
  const annotations = sizeAnnotations(deployment);
  const next = newReplicaSetOf(deployment, sets);
  const active = sets.filter((set) => replicasOf(set) > 0);
  const only = active.length <= 1 ? (active[0] ?? next ?? newestOf(sets)) : undefined;
  if (only !== undefined) return [{ set: only, replicas: wanted, annotations }];
  if (next !== undefined && isSaturated(deployment, next)) {
    return active.map((set) => ({ set, replicas: set === next ? replicasOf(set) : 0, annotations }));
  }
  if (active.length === 0) return [];
  return proportional(deployment, { active, annotations });
}

/** Distributes the difference among the ReplicaSets of a rollout, proportionally to their size. */
function proportional(
  deployment: Deployment,
  { active, annotations }: { active: ReplicaSet[]; annotations: Record<string, string> },
): Scaling[] {
  const wanted = replicasOf(deployment);
  const allowed = wanted === 0 ? 0 : wanted + rolloutLimits(deployment).maxSurge;
  const difference = allowed - sum(active, replicasOf);
  const newestFirst = (a: ReplicaSet, b: ReplicaSet) =>
    (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? "") * (difference > 0 ? 1 : -1);
  const sorted = [...active].sort((a, b) => replicasOf(b) - replicasOf(a) || newestFirst(a, b));
  const sizes = new Map(sorted.map((set) => [set, replicasOf(set)]));
  let added = 0;
  for (const set of sorted) {
    const before = Number(set.metadata.annotations?.["deployment.kubernetes.io/max-replicas"] ?? allowed);
    const share = Math.round((replicasOf(set) * allowed) / Math.max(1, before)) - replicasOf(set);
    const rest = difference - added;
    const part = difference > 0 ? Math.min(Math.max(0, share), rest) : Math.max(Math.min(0, share), rest);
    sizes.set(set, replicasOf(set) + part);
    added += part;
  }
  const [largest] = sorted;
  if (largest !== undefined) sizes.set(largest, Math.max(0, (sizes.get(largest) ?? 0) + difference - added));
  return sorted.map((set) => ({ set, replicas: sizes.get(set) ?? 0, annotations }));
}

function newestOf(sets: ReplicaSet[]): ReplicaSet | undefined {
  return [...sets].sort((a, b) =>
    (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? ""),
  )[0];
}

function availableOf({ status }: ReplicaSet): number {
  return status?.availableReplicas ?? 0;
}

function sum(sets: ReplicaSet[], countOf: (set: ReplicaSet) => number): number {
  return sets.reduce((total, set) => total + countOf(set), 0);
}
