import {
  type StatusCondition,
  type StatusContext,
  type Workload,
  type WorkloadUpdate,
  countAt,
  keepTimes,
  nonZero,
  templateHash,
} from "./workload.js";

const REVISION = "deployment.kubernetes.io/revision";

/** What the deployment controller writes: counts, the conditions Available and Progressing, and the revision. */
export function deploymentUpdate(deployment: Workload, context: StatusContext): WorkloadUpdate {
  const { metadata, spec, status } = deployment;
  const annotations = { ...metadata.annotations, [REVISION]: revisionOf(deployment) };
  if (spec.paused === true) return { annotations, status: { ...status, observedGeneration: metadata.generation } };
  const replicas = spec.replicas ?? 1;
  const ready = context.stage === "ready" ? replicas : Math.min(replicas, countAt(status, "readyReplicas"));
  const counts = { replicas, updatedReplicas: replicas, readyReplicas: ready, availableReplicas: ready };
  const conditions = [
    availableCondition(ready >= replicas - maxUnavailable(spec, replicas), context),
    progressingCondition(deployment, { isComplete: ready === replicas, now: context.now }),
  ];
  return {
    annotations,
    status: {
      observedGeneration: metadata.generation,
      ...nonZero({ ...counts, unavailableReplicas: replicas - ready }),
      terminatingReplicas: 0,
      conditions: withConditions(status?.["conditions"], keepTimes(conditions, status?.["conditions"])),
    },
  };
}

/** Sets conditions among those that others have written. */
function withConditions(before: unknown, ours: readonly StatusCondition[]): StatusCondition[] {
  const existing = (before ?? []) as StatusCondition[];
  const replaced = existing.map((condition) => ours.find(({ type }) => type === condition.type) ?? condition);
  return [...replaced, ...ours.filter(({ type }) => !existing.some((condition) => condition.type === type))];
}

function availableCondition(isAvailable: boolean, { now }: StatusContext): StatusCondition {
  return {
    type: "Available",
    status: isAvailable ? "True" : "False",
    lastUpdateTime: now,
    lastTransitionTime: now,
    reason: isAvailable ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
    message: `Deployment ${isAvailable ? "has" : "does not have"} minimum availability.`,
  };
}

function progressingCondition(
  deployment: Workload,
  { isComplete, now }: { isComplete: boolean; now: string },
): StatusCondition {
  const verb = isComplete ? "has successfully progressed" : "is progressing";
  return {
    type: "Progressing",
    status: "True",
    lastUpdateTime: now,
    lastTransitionTime: now,
    reason: isComplete ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
    message: `ReplicaSet "${replicaSetOf(deployment)}" ${verb}.`,
  };
}

function replicaSetOf({ metadata, spec }: Workload): string {
  return `${metadata.name}-${templateHash(spec.template)}`;
}

/** The message of the condition Progressing remembers which template the revision stands for. */
function revisionOf(deployment: Workload): string {
  const revision = deployment.metadata.annotations?.[REVISION];
  if (revision === undefined) return "1";
  const conditions = (deployment.status?.["conditions"] ?? []) as StatusCondition[];
  const progressing = conditions.find(({ type }) => type === "Progressing");
  const isNew = progressing !== undefined && !progressing.message?.includes(`"${replicaSetOf(deployment)}"`);
  return isNew ? String(Number(revision) + 1) : revision;
}

/** A percentage is rounded down; the default of the server is 25 %. */
function maxUnavailable({ strategy }: Workload["spec"], replicas: number): number {
  const limit = strategy?.rollingUpdate?.maxUnavailable;
  if (typeof limit === "number") return limit;
  return limit === undefined ? 0 : Math.floor((replicas * Number.parseInt(limit, 10)) / 100);
}
