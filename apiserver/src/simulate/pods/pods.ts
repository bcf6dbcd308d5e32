// The scheduler and the kubelet: Pods get a Node, start after a time, run or end, and go when they are deleted. Nothing runs.
import type { Controller, ControllerContext } from "../feed/controller.js";
import { type KubernetesObject, keyOfObject } from "../feed/kubernetes-object.js";
import { outcomeOf, readyAfterMs } from "./outcome.js";
import { type Pod, isFinished, timestamp, withConditions } from "./pod.js";
import { recordStart, recordStop } from "./pod-events.js";
import { podStatus } from "./pod-status.js";
import { isSame } from "./same.js";
import { type Claim, type Node, placementOf } from "./schedule.js";

/** Makes the controller that stands for scheduler and kubelet. */
export function createPods(): Controller<Pod> {
  /** When we first saw a Pod on its Node, and when it ran; in memory, as seconds would be too coarse. */
  const startedAt = new Map<string, number>();
  const startOf = ({ metadata, status }: Pod, now: Date): number => {
    const known =
      startedAt.get(metadata.uid) ?? (status?.startTime === undefined ? now.getTime() : Date.parse(status.startTime));
    startedAt.set(metadata.uid, known);
    return known;
  };
  return {
    kind: "pods.",
    watches: { "nodes.": waitingPods, "persistentvolumeclaims.": waitingPods, "storageclasses.storage.k8s.io": noPods },
    async reconcile(pod, context) {
      if (pod.metadata.deletionTimestamp !== undefined) {
        startedAt.delete(pod.metadata.uid);
        return remove(pod, context);
      }
      if (isFinished(pod)) return undefined;
      if (pod.spec.nodeName === undefined || pod.spec.nodeName === "") return schedule(pod, context);
      return run(pod, startOf(pod, context.now()), context);
    },
  };
}

/** Writes the state that a Pod has reached; returns when the next one is due. */
async function run(pod: Pod, start: number, { cluster, now, delayMs }: ControllerContext): Promise<number | undefined> {
  const outcome = outcomeOf(pod);
  const elapsed = now().getTime() - start;
  const readyAfter = readyAfterMs(pod, delayMs);
  const { restartPolicy = "Always" } = pod.spec;
  // Who ends and is restarted runs for ever, or crashes.
  const mayEnd = outcome === "succeed" ? restartPolicy !== "Always" : outcome === "fail" && restartPolicy === "Never";
  const endAfter = readyAfter + delayMs;
  const stage = elapsed < readyAfter ? "starting" : mayEnd && elapsed >= endAfter ? "ended" : "running";
  const shown = outcome === "fail" && !mayEnd ? "crash" : outcome;
  const status = podStatus(pod, { stage, outcome: shown, now: now() });
  if (!isSame(pod.status, status)) {
    await cluster.update("pods.", { ...pod, status }, { subresource: "status", manager: "kubelet" });
    recordStart(cluster, pod, { status, outcome: shown });
  }
  if (stage === "starting") return readyAfter - elapsed;
  return stage === "running" && mayEnd ? endAfter - elapsed : undefined;
}

/** Binds a Pod to a Node, or says why not. */
async function schedule(pod: Pod, { cluster, now }: ControllerContext): Promise<void> {
  if ((pod.spec.schedulingGates ?? []).length > 0) return;
  const { namespace = "", name } = pod.metadata;
  const placement = placementOf(pod, {
    nodes: cluster.list<Node>("nodes.").filter(({ metadata }) => metadata.deletionTimestamp === undefined),
    claimOf: (claim) => cluster.get<Claim>("persistentvolumeclaims.", `${namespace}/${claim}`),
    isLate({ spec }) {
      const type = cluster.get<KubernetesObject & { volumeBindingMode?: string }>(
        "storageclasses.storage.k8s.io",
        spec?.storageClassName ?? "",
      );
      return type?.volumeBindingMode === "WaitForFirstConsumer";
    },
  });
  if ("nodeName" in placement) {
    await cluster.post("pods.", pod, {
      subresource: "binding",
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace },
      target: { kind: "Node", name: placement.nodeName },
    });
    const message = `Successfully assigned ${namespace}/${name} to ${placement.nodeName}`;
    cluster.record("pods.", pod, { reason: "Scheduled", message, by: { action: "Binding" } });
    return;
  }
  const lastTransitionTime = timestamp(now());
  const conditions = withConditions(pod.status?.conditions, [
    {
      type: "PodScheduled",
      status: "False",
      lastProbeTime: null,
      lastTransitionTime,
      reason: "Unschedulable",
      message: placement.problem,
      observedGeneration: pod.metadata.generation ?? 1,
    },
  ]);
  const status = { ...pod.status, conditions };
  if (!isSame(pod.status, status)) {
    await cluster.update("pods.", { ...pod, status }, { subresource: "status", manager: "kube-scheduler" });
    const detail = { type: "Warning", reason: "FailedScheduling", message: placement.problem } as const;
    cluster.record("pods.", pod, { ...detail, by: { action: "Scheduling" } });
  }
}

/** What the kubelet does once the containers of a pod that is being deleted have stopped. */
async function remove(pod: Pod, { cluster }: ControllerContext): Promise<void> {
  const { deletionGracePeriodSeconds } = pod.metadata as { deletionGracePeriodSeconds?: number };
  // Others hold it: their finalizers.
  if (deletionGracePeriodSeconds === 0) return;
  recordStop(cluster, pod);
  await cluster.remove("pods.", pod, { gracePeriodSeconds: 0 });
}

function waitingPods(_: KubernetesObject, cluster: ControllerContext["cluster"]): string[] {
  const pods = cluster.list<Pod>("pods.").filter(({ spec }) => spec.nodeName === undefined);
  return pods.map(({ metadata }) => keyOfObject(metadata));
}

function noPods(): string[] {
  return [];
}
