// What the controllers and the kubelet of Kubernetes 1.36 write into the status of workloads whose pods start and stay well.
// Recorded from kube-controller-manager 1.36.3; Pods are not created here, so only the status tells of them.
import { deploymentUpdate } from "./deployment-status.js";
import { podUpdate } from "./pod-status.js";
import {
  type ComputeUpdate,
  type StatusContext,
  type Workload,
  type WorkloadUpdate,
  countAt,
  keepTimes,
  nonZero,
  templateHash,
} from "./workload.js";

/** The kinds that become ready, by plural and group, with the manager under whose name their status is written. */
export const workloadKinds: Record<string, { computeUpdate: ComputeUpdate; manager: string }> = {
  "deployments.apps": { computeUpdate: deploymentUpdate, manager: "kube-controller-manager" },
  "replicasets.apps": { computeUpdate: replicaSetUpdate, manager: "kube-controller-manager" },
  "statefulsets.apps": { computeUpdate: statefulSetUpdate, manager: "kube-controller-manager" },
  "daemonsets.apps": { computeUpdate: daemonSetUpdate, manager: "kube-controller-manager" },
  "jobs.batch": { computeUpdate: jobUpdate, manager: "kube-controller-manager" },
  "pods.": { computeUpdate: podUpdate, manager: "kubelet" },
};

function replicaSetUpdate({ metadata, spec, status }: Workload, { stage }: StatusContext): WorkloadUpdate {
  const replicas = spec.replicas ?? 1;
  const ready = stage === "ready" ? replicas : Math.min(replicas, countAt(status, "readyReplicas"));
  return {
    status: {
      replicas,
      ...nonZero({ fullyLabeledReplicas: replicas, readyReplicas: ready, availableReplicas: ready }),
      terminatingReplicas: 0,
      observedGeneration: metadata.generation,
    },
  };
}

function statefulSetUpdate({ metadata, spec, status }: Workload, { stage }: StatusContext): WorkloadUpdate {
  const replicas = spec.replicas ?? 1;
  const ready = stage === "ready" ? replicas : Math.min(replicas, countAt(status, "readyReplicas"));
  const revision = `${metadata.name}-${templateHash(spec.template)}`;
  return {
    status: {
      observedGeneration: metadata.generation,
      replicas,
      ...nonZero({ readyReplicas: ready, currentReplicas: replicas, updatedReplicas: replicas }),
      currentRevision: revision,
      updateRevision: revision,
      collisionCount: 0,
      availableReplicas: ready,
    },
  };
}

/** Daemons run on one node, which need not exist. */
function daemonSetUpdate({ metadata }: Workload, { stage }: StatusContext): WorkloadUpdate {
  const ready = stage === "ready" ? 1 : 0;
  return {
    status: {
      currentNumberScheduled: 1,
      numberMisscheduled: 0,
      desiredNumberScheduled: 1,
      numberReady: ready,
      observedGeneration: metadata.generation,
      updatedNumberScheduled: 1,
      ...nonZero({ numberAvailable: ready, numberUnavailable: 1 - ready }),
    },
  };
}

function jobUpdate({ spec, status }: Workload, { stage, now }: StatusContext): WorkloadUpdate | undefined {
  // What has finished stays as it is; what is suspended has not started.
  if (spec.suspend === true || status?.["completionTime"] !== undefined) return undefined;
  const completions = spec.completions ?? 1;
  const startTime = status?.["startTime"] ?? now;
  const counts = { terminating: 0, uncountedTerminatedPods: {}, ready: 0 };
  if (stage === "started") {
    const active = Math.min(spec.parallelism ?? 1, completions);
    return { status: { startTime, ...nonZero({ active }), ...counts } };
  }
  const reached = {
    status: "True" as const,
    lastProbeTime: now,
    lastTransitionTime: now,
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
  };
  const conditions = keepTimes(
    [
      { type: "SuccessCriteriaMet", ...reached },
      { type: "Complete", ...reached },
    ],
    status?.["conditions"],
  );
  return { status: { conditions, startTime, completionTime: now, ...nonZero({ succeeded: completions }), ...counts } };
}
