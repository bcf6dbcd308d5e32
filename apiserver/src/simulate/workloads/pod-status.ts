import { createHash } from "node:crypto";
import { type Container, type StatusContext, type Workload, type WorkloadUpdate, keepTimes } from "./workload.js";

/** What the kubelet writes: phase, conditions, addresses, and the state of every container. */
export function podUpdate(
  { metadata, spec, status }: Workload,
  { stage, now }: StatusContext,
): WorkloadUpdate | undefined {
  // A pod that has come to its end, by whoever's hand, does not start again.
  if (status?.["phase"] === "Succeeded" || status?.["phase"] === "Failed") return undefined;
  const isReady = stage === "ready";
  const startTime = status?.["startTime"] ?? now;
  const conditionTypes = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
  const conditions = conditionTypes.map((type) => ({
    type,
    status: isReady || type === "PodScheduled" ? ("True" as const) : ("False" as const),
    lastProbeTime: null,
    lastTransitionTime: now,
    observedGeneration: metadata.generation ?? 1,
  }));
  const podIP = addressOf(metadata.uid);
  return {
    status: {
      ...status,
      observedGeneration: metadata.generation ?? 1,
      phase: isReady ? "Running" : "Pending",
      conditions: keepTimes(conditions, status?.["conditions"]),
      startTime,
      ...(isReady
        ? {
            podIP,
            podIPs: [{ ip: podIP }],
            containerStatuses: containerStatuses(spec.containers, status?.["containerStatuses"], {
              ready: true,
              started: true,
              state: { running: { startedAt: now } },
            }),
            ...(spec.initContainers === undefined
              ? {}
              : {
                  initContainerStatuses: containerStatuses(spec.initContainers, status?.["initContainerStatuses"], {
                    ready: true,
                    started: false,
                    state: { terminated: { exitCode: 0, reason: "Completed", startedAt: startTime, finishedAt: now } },
                  }),
                }),
          }
        : {}),
    },
  };
}

interface ContainerState {
  ready: boolean;
  started: boolean;
  state: object;
}

/** States of containers; those that were written before stay. */
function containerStatuses(containers: Container[] = [], before: unknown, state: ContainerState): object[] {
  const olds = Array.isArray(before) ? (before as { name: string; ready: boolean }[]) : [];
  return containers.map(({ name, image = "" }) => {
    const old = olds.find((status) => status.name === name && status.ready);
    return old ?? { name, image, imageID: "", restartCount: 0, lastState: {}, ...state };
  });
}

/** An address that stays with the pod. */
function addressOf(uid: string): string {
  const digest = createHash("sha256").update(uid).digest();
  return `10.244.${digest[0]}.${Math.max(1, Math.min(254, digest[1] ?? 1))}`;
}
