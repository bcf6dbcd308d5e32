import type { PodTemplate } from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import { type Workload, type WorkloadSpec, type WorkloadStatus, templateHash } from "./workload.js";

/** What is read from the spec of a Deployment. */
export interface DeploymentSpec extends WorkloadSpec {
  paused?: boolean;
  strategy?: { type?: string; rollingUpdate?: { maxUnavailable?: number | string; maxSurge?: number | string } };
  progressDeadlineSeconds?: number;
}

/** A Deployment. */
export type Deployment = Workload<DeploymentSpec>;

/** A ReplicaSet. */
export interface ReplicaSet extends Workload {
  status?: WorkloadStatus & {
    replicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    observedGeneration?: number;
  };
}

/** The label that tells the Pods of one template from those of another. */
export const HASH = "pod-template-hash";
/** The annotation that counts templates. */
export const REVISION = "deployment.kubernetes.io/revision";

/** The number of replicas that is asked for. */
export function replicasOf({ spec }: Pick<Deployment, "spec">): number {
  return spec.replicas ?? 1;
}

/** The revision of a ReplicaSet or Deployment. */
export function revisionOf({ metadata }: Pick<Deployment, "metadata">): string {
  return metadata.annotations?.[REVISION] ?? "0";
}

/** The ReplicaSet that has the present template of a Deployment; of several the oldest. */
export function newReplicaSetOf({ spec }: Deployment, sets: ReplicaSet[]): ReplicaSet | undefined {
  const wanted = withoutHash(spec.template);
  return [...sets]
    .sort((a, b) => (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""))
    .find((set) => isSame(withoutHash(set.spec.template), wanted));
}

/** The name that the ReplicaSet of the present template has, or will have. */
export function hashOf({ spec, status }: Deployment): string {
  return templateHash(spec.template, Number(status?.["collisionCount"] ?? 0));
}

function withoutHash({ metadata = {}, spec }: PodTemplate): PodTemplate {
  const { [HASH]: _, ...labels } = metadata.labels ?? {};
  return { metadata: { ...metadata, labels }, spec };
}

/** Do all Pods of a Deployment have this ReplicaSet's template, and are they available? */
export function isSaturated(deployment: Deployment, set: ReplicaSet): boolean {
  const wanted = replicasOf(deployment);
  return replicasOf(set) === wanted && (set.status?.availableReplicas ?? 0) === wanted;
}

/** How many Pods may be missing, and how many more there may be, during a rollout. */
export function rolloutLimits({ spec }: Deployment): { maxUnavailable: number; maxSurge: number } {
  const replicas = spec.replicas ?? 1;
  if (spec.strategy?.type === "Recreate" || replicas === 0) return { maxUnavailable: 0, maxSurge: 0 };
  const { maxUnavailable = "25%", maxSurge = "25%" } = spec.strategy?.rollingUpdate ?? {};
  const surge = scaled(maxSurge, replicas, Math.ceil);
  const unavailable = Math.min(scaled(maxUnavailable, replicas, Math.floor), replicas);
  // Otherwise nothing could be replaced.
  return { maxSurge: surge, maxUnavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** A number, or a percentage of a total. */
export function scaled(value: number | string, total: number, round: (value: number) => number): number {
  return typeof value === "number" ? value : round((total * Number.parseInt(value, 10)) / 100);
}
