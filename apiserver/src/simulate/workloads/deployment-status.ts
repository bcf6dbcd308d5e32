import { type StatusCondition, withConditions, timestamp } from "../pods/pod.js";
import { type Deployment, type ReplicaSet, hashOf, newReplicaSetOf, replicasOf, rolloutLimits } from "./deployment.js";
import { type WorkloadStatus, countAt, nonZero } from "./workload.js";

/** What the deployment controller writes: counts, and the conditions Available, Progressing and ReplicaFailure. */
export function deploymentStatus(
  deployment: Deployment,
  sets: ReplicaSet[],
  now: Date,
): { status: WorkloadStatus; again: number | undefined } {
  const { metadata, status } = deployment;
  const next = newReplicaSetOf(deployment, sets);
  const total = (field: string) => sets.reduce((sum, set) => sum + countAt(set.status, field), 0);
  const counts: Counts = {
    replicas: total("replicas"),
    updatedReplicas: countAt(next?.status, "replicas"),
    readyReplicas: total("readyReplicas"),
    availableReplicas: total("availableReplicas"),
  };
  const asked = sets.reduce((sum, set) => sum + replicasOf(set), 0);
  const unavailableReplicas = Math.max(0, asked - counts.availableReplicas);
  const minimum = replicasOf(deployment) - rolloutLimits(deployment).maxUnavailable;
  const { condition, again } = progressing(deployment, { next, counts, now });
  const conditions = withConditions(
    status?.conditions?.filter(({ type }) => type !== "ReplicaFailure"),
    [
      available(counts.availableReplicas >= minimum, now),
      ...(condition === undefined ? [] : [condition]),
      ...failures(sets),
    ],
    // Progress is told by the time alone.
  ).map((each) => (each.type === condition?.type ? { ...each, lastUpdateTime: condition.lastUpdateTime ?? "" } : each));
  const { collisionCount } = (status ?? {}) as { collisionCount?: number };
  return {
    again,
    status: {
      observedGeneration: metadata.generation,
      ...nonZero({ ...counts, unavailableReplicas }),
      terminatingReplicas: total("terminatingReplicas"),
      ...(collisionCount === undefined ? {} : { collisionCount }),
      conditions,
    },
  };
}

type Counts = Record<"replicas" | "updatedReplicas" | "readyReplicas" | "availableReplicas", number>;

function failures(sets: ReplicaSet[]): StatusCondition[] {
  const failed = sets.flatMap(({ status }) => status?.conditions ?? []).find(({ type }) => type === "ReplicaFailure");
  return failed === undefined ? [] : [{ ...failed, lastUpdateTime: failed.lastTransitionTime }];
}

function available(isAvailable: boolean, now: Date): StatusCondition {
  return conditionOf(
    [
      "Available",
      isAvailable ? "True" : "False",
      isAvailable ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
    ],
    `Deployment ${isAvailable ? "has" : "does not have"} minimum availability.`,
    now,
  );
}

function progressing(
  deployment: Deployment,
  { next, counts, now }: { next: ReplicaSet | undefined; counts: Counts; now: Date },
): { condition?: StatusCondition | undefined; again?: number | undefined } {
  const { metadata, spec, status } = deployment;
  const before = status?.conditions?.find(({ type }) => type === "Progressing");
  const deadline = spec.progressDeadlineSeconds;
  if (deadline === undefined || deadline === 2 ** 31 - 1) return {};
  if (spec.paused === true) {
    if (before?.reason === "ProgressDeadlineExceeded") return { condition: before };
    return { condition: conditionOf(["Progressing", "Unknown", "DeploymentPaused"], "Deployment is paused", now) };
  }
  const name = next?.metadata.name ?? `${metadata.name}-${hashOf(deployment)}`;
  const condition = (status: "True" | "False", reason: string, end: string) =>
    conditionOf(["Progressing", status, reason], `ReplicaSet "${name}" ${end}`, now);
  const wanted = replicasOf(deployment);
  const isComplete =
    counts.updatedReplicas === wanted && counts.replicas === wanted && counts.availableReplicas === wanted;
  if (isComplete && next !== undefined) {
    const complete = condition("True", "NewReplicaSetAvailable", "has successfully progressed.");
    const isKnown = before?.reason === complete.reason && before?.message === complete.message;
    return { condition: isKnown ? before : complete };
  }
  if (before === undefined) return { condition: condition("True", "ReplicaSetUpdated", "is progressing.") };
  const hasProgressed =
    counts.updatedReplicas > countAt(status, "updatedReplicas") ||
    counts.replicas - counts.updatedReplicas < countAt(status, "replicas") - countAt(status, "updatedReplicas") ||
    counts.readyReplicas > countAt(status, "readyReplicas") ||
    counts.availableReplicas > countAt(status, "availableReplicas");
  const isFresh = before.reason === "NewReplicaSetAvailable" || before.reason === "DeploymentPaused";
  if (hasProgressed || isFresh)
    return { condition: condition("True", "ReplicaSetUpdated", "is progressing."), again: deadline * 1000 };
  if (before.reason === "ProgressDeadlineExceeded") return { condition: before };
  const left = Date.parse(before.lastUpdateTime ?? before.lastTransitionTime) + deadline * 1000 - now.getTime();
  if (left > 0) return { condition: before, again: left };
  return { condition: condition("False", "ProgressDeadlineExceeded", "has timed out progressing.") };
}

function conditionOf(
  [type, status, reason]: [type: string, status: "True" | "False" | "Unknown", reason: string],
  message: string,
  now: Date,
): StatusCondition {
  const time = timestamp(now);
  return { type, status, lastUpdateTime: time, lastTransitionTime: time, reason, message };
}
