// ReplicaSets as the history of a Deployment.
import { ApiError } from "../feed/api-client.js";
import type { Cluster } from "../feed/cluster.js";
import { controllerReference } from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import {
  type Deployment,
  type ReplicaSet,
  HASH,
  REVISION,
  hashOf,
  replicasOf,
  revisionOf,
  rolloutLimits,
} from "./deployment.js";
import { sizeAnnotations } from "./rollout.js";

const KIND = "replicasets.apps";
const HISTORY = "deployment.kubernetes.io/revision-history";
const NOT_COPIED = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  REVISION,
  HISTORY,
  "deployment.kubernetes.io/desired-replicas",
  "deployment.kubernetes.io/max-replicas",
  "deprecated.deployment.rollback.to",
]);

/** Creates the ReplicaSet of the present template. */
export async function createNewReplicaSet(
  cluster: Cluster,
  deployment: Deployment,
  sets: ReplicaSet[],
): Promise<ReplicaSet> {
  const { metadata, spec, status } = deployment;
  const hash = hashOf(deployment);
  const { template } = spec;
  const labels = { ...template.metadata?.labels, [HASH]: hash };
  const room =
    replicasOf(deployment) + rolloutLimits(deployment).maxSurge - sets.reduce((sum, set) => sum + replicasOf(set), 0);
  const isRolling = spec.strategy?.type !== "Recreate";
  const replicas = isRolling ? Math.max(0, Math.min(replicasOf(deployment), room)) : replicasOf(deployment);
  try {
    const created = await cluster.create<ReplicaSet>(KIND, {
      metadata: {
        name: `${metadata.name}-${hash}`,
        ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
        labels,
        annotations: {
          ...copiedAnnotations(deployment),
          ...sizeAnnotations(deployment),
          [REVISION]: nextRevision(sets),
        },
        ownerReferences: [controllerReference("apps/v1", "Deployment", deployment)],
      },
      spec: {
        replicas,
        ...(spec.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
        selector: { ...spec.selector, matchLabels: { ...spec.selector?.matchLabels, [HASH]: hash } },
        template: { ...template, metadata: { ...template.metadata, labels } },
      },
    });
    if (replicas > 0) recordScaling(cluster, deployment, { set: created, from: 0, to: replicas });
    return created;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    // Another object has the name: the next attempt takes another one.
    const collisionCount = Number(status?.["collisionCount"] ?? 0) + 1;
    const next = { ...deployment, status: { ...status, collisionCount } };
    await cluster.update("deployments.apps", next, { subresource: "status" });
    throw error;
  }
}

/** Tells that a ReplicaSet was made larger or smaller. */
export function recordScaling(
  cluster: Cluster,
  deployment: Deployment,
  { set, from, to }: { set: ReplicaSet; from: number; to: number },
): void {
  const message = `Scaled ${from < to ? "up" : "down"} replica set ${set.metadata.name} from ${from} to ${to}`;
  cluster.record("deployments.apps", deployment, { reason: "ScalingReplicaSet", message });
}

/** Lets the present ReplicaSet have the highest revision, and what else a Deployment tells its ReplicaSet. */
export async function setRevision(
  cluster: Cluster,
  deployment: Deployment,
  { next, sets }: { next: ReplicaSet; sets: ReplicaSet[] },
): Promise<ReplicaSet> {
  const old = sets.filter(({ metadata }) => metadata.uid !== next.metadata.uid);
  const wanted = nextRevision(old);
  const present = revisionOf(next);
  const isRaised = Number(present) < Number(wanted);
  const history = [next.metadata.annotations?.[HISTORY], present].filter((one) => one !== undefined && one !== "");
  const annotations = {
    ...next.metadata.annotations,
    ...copiedAnnotations(deployment),
    ...(isRaised ? { [REVISION]: wanted, ...(present === "0" ? {} : { [HISTORY]: history.join(",") }) } : {}),
  };
  const { minReadySeconds } = deployment.spec;
  const changed = {
    ...next,
    metadata: { ...next.metadata, annotations },
    spec: { ...next.spec, ...(minReadySeconds === undefined ? {} : { minReadySeconds }) },
  };
  return isSame(changed, next) ? next : cluster.update<ReplicaSet>(KIND, changed);
}

function nextRevision(old: ReplicaSet[]): string {
  return String(Math.max(0, ...old.map((set) => Number(revisionOf(set)))) + 1);
}

function copiedAnnotations({ metadata }: Deployment): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([name]) => !NOT_COPIED.has(name)));
}
