// The scheduler and the kubelet: Pods get a Node, start after a time, run or end, and go when they are deleted. Nothing runs.
import { elapsedMs } from "../../real-time.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { type KubernetesObject, keyOfObject } from "../feed/kubernetes-object.js";
import { planOf, planProblem } from "./outcome.js";
import { type Pod, isFinished, timestamp, withConditions } from "./pod.js";
import { recordMounts, recordStart, recordStop } from "./pod-events.js";
import { findMissingInputs, type MissingInputs } from "./pod-inputs.js";
import { CONFIG_ERROR, podStatus } from "./pod-status.js";
import { isSame } from "./same.js";
import { type Claim, type Node, type Placement, placementOf, toleratedMs } from "./schedule.js";

/** What is remembered of a Pod on its Node; in memory, as seconds would be too coarse. */
interface KnownPod {
  /** When the kubelet first saw the Pod, in monotonic time. */
  start: number;
  /** How often what it needs was looked for in vain. */
  attempts: number;
  /** The volumes that could not be mounted, as was told. */
  mounts: string;
  /** When its Node was first seen with taints that it does not tolerate for ever, by the clock of the server. */
  taintedAt?: number | undefined;
}

/** Makes the controller that stands for scheduler and kubelet. */
export function createPods(): Controller<Pod> {
  const known = new Map<string, KnownPod>();
  const knownOf = ({ metadata, status }: Pod, now: Date): KnownPod => {
    const age = status?.startTime === undefined ? 0 : Math.max(0, now.getTime() - Date.parse(status.startTime));
    const start = elapsedMs() - age;
    const one = known.get(metadata.uid) ?? { start, attempts: 0, mounts: "" };
    known.set(metadata.uid, one);
    return one;
  };
  return {
    kind: "pods.",
    watches: { "nodes.": podsOfNode, "persistentvolumeclaims.": waitingPods, "storageclasses.storage.k8s.io": noPods },
    async reconcile(pod, context) {
      if (pod.metadata.deletionTimestamp !== undefined) {
        known.delete(pod.metadata.uid);
        return remove(pod, context);
      }
      if (isFinished(pod)) return void known.delete(pod.metadata.uid);
      if (!isScheduled(pod)) return isOurs(pod) ? schedule(pod, context) : undefined;
      const one = knownOf(pod, context.now());
      const leaves = await evict(pod, one, context);
      return leaves === 0 ? undefined : earliest(leaves, await run(pod, one, context));
    },
  };
}

function isScheduled({ spec }: Pod): boolean {
  return spec.nodeName !== undefined && spec.nodeName !== "";
}

const NOTHING_MISSING: MissingInputs = { mounts: [], containers: new Map() };

/** Writes the state that a Pod has reached; returns when the next one is due. */
async function run(pod: Pod, known: KnownPod, context: ControllerContext): Promise<number | undefined> {
  const { cluster, now, delayMs } = context;
  // Bound elsewhere, or changed since: it stays as it is.
  if (planProblem(pod) !== undefined) return undefined;
  const { outcome, exitCode, readyAfterMs: readyAfter } = planOf(pod, delayMs);
  const isDue = elapsedMs() - known.start >= readyAfter;
  const missing = isDue && !hasAllInputs(pod) ? await findMissingInputs(pod, context) : NOTHING_MISSING;
  const isMounted = missing.mounts.length === 0;
  const lacksInput = !isMounted || (outcome !== "no-image" && missing.containers.size > 0);
  // What was waited for is there, so the containers start now.
  if (!lacksInput && known.attempts > 0) Object.assign(known, { attempts: 0, start: elapsedMs() - readyAfter });
  const elapsed = elapsedMs() - known.start;
  const { restartPolicy = "Always" } = pod.spec;
  // Who ends and is restarted runs for ever, or crashes.
  const mayEnd = outcome === "succeed" ? restartPolicy !== "Always" : outcome === "fail" && restartPolicy === "Never";
  const endAfter = readyAfter + delayMs;
  const hasEnded = mayEnd && elapsed >= endAfter && !lacksInput;
  const stage = elapsed < readyAfter || !isMounted ? "starting" : hasEnded ? "ended" : "running";
  const shown = outcome === "fail" && !mayEnd ? "crash" : outcome;
  const crashes = crashesAfter(elapsed - readyAfter, delayMs);
  const status = podStatus(pod, {
    ...{ stage, outcome: shown, now: now(), exitCode, restarts: crashes.count },
    configErrors: missing.containers,
  });
  if (!isSame(pod.status, status)) {
    await cluster.update("pods.", { ...pod, status }, { subresource: "status", manager: "kubelet" });
    recordStart(cluster, pod, { status, outcome: shown });
  }
  const mounts = missing.mounts.join("\n");
  if (mounts !== known.mounts) recordMounts(cluster, pod, missing.mounts);
  known.mounts = mounts;
  if (lacksInput) return Math.min(FIRST_RETRY_MS * 2 ** known.attempts++, LONGEST_RETRY_MS);
  if (stage === "starting") return readyAfter - elapsed;
  if (stage === "running" && shown === "crash") return crashes.nextMs;
  return stage === "running" && mayEnd ? endAfter - elapsed : undefined;
}

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 2_000;

/** Does every container run, or has run? What they need is looked at before that. */
function hasAllInputs({ status }: Pod): boolean {
  if (status?.podIP === undefined) return false;
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return !all.some(
    ({ state }) => state.waiting?.reason === CONFIG_ERROR || state.waiting?.reason === "PodInitializing",
  );
}

/** The kubelet waits no longer than this for the next start of a container that crashes. */
const LONGEST_BACK_OFF_MS = 300_000;

/** How often a container has crashed in a time, as each pause is twice as long as the one before, and when it will again. */
function crashesAfter(elapsedMs: number, firstPauseMs: number): { count: number; nextMs: number } {
  let count = 1;
  let at = Math.max(firstPauseMs, 1);
  for (let pause = at; at <= elapsedMs; count++, at += pause) pause = Math.min(pause * 2, LONGEST_BACK_OFF_MS);
  return { count, nextMs: at - elapsedMs };
}

/** Deletes a Pod whose Node has a taint NoExecute that it does not tolerate; returns in how many milliseconds it has to go. */
async function evict(pod: Pod, known: KnownPod, { cluster, now }: ControllerContext): Promise<number | undefined> {
  const node = cluster.get<Node>("nodes.", pod.spec.nodeName ?? "");
  const tolerated = node === undefined ? undefined : toleratedMs(pod, node);
  known.taintedAt = tolerated === undefined ? undefined : (known.taintedAt ?? now().getTime());
  if (tolerated === undefined || known.taintedAt === undefined) return undefined;
  const left = known.taintedAt + tolerated - now().getTime();
  if (left > 0) return left;
  const { namespace, name } = pod.metadata;
  const message = `Marking for deletion Pod ${namespace}/${name}`;
  cluster.record("pods.", pod, {
    reason: "TaintManagerEviction",
    message,
    by: { component: "taint-eviction-controller" },
  });
  const conditions = withConditions(pod.status?.conditions, [
    {
      ...{ type: "DisruptionTarget", status: "True", reason: "DeletionByTaintManager" },
      message: "Taint manager: deleting due to NoExecute taint",
      lastTransitionTime: timestamp(now()),
      observedGeneration: pod.metadata.generation ?? 1,
    },
  ]);
  const marked = await cluster.update(
    "pods.",
    { ...pod, status: { ...pod.status, conditions } },
    { subresource: "status" },
  );
  await cluster.remove("pods.", marked);
  return 0;
}

function earliest(...times: (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Is the Pod for the simulated scheduler? */
function isOurs({ spec }: Pod): boolean {
  return spec.schedulerName === undefined || spec.schedulerName === "default-scheduler";
}

/** Binds a Pod to a Node, or says why not. */
async function schedule(pod: Pod, { cluster, now }: ControllerContext): Promise<void> {
  if ((pod.spec.schedulingGates ?? []).length > 0) return;
  const { namespace = "", name } = pod.metadata;
  const misspelt = planProblem(pod);
  const placement: Placement =
    misspelt !== undefined
      ? { problem: misspelt }
      : placementOf(pod, {
          nodes: cluster.list<Node>("nodes.").filter(({ metadata }) => metadata.deletionTimestamp === undefined),
          placed: () =>
            cluster.list<Pod>("pods.").flatMap((other) => {
              const node = cluster.get<Node>("nodes.", other.spec.nodeName ?? "");
              return node === undefined || isFinished(other) ? [] : [{ pod: other, node }];
            }),
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

/** Stops the containers of a Pod that is being deleted, says how they have ended, and lets the Pod go. */
async function remove(pod: Pod, context: ControllerContext): Promise<void> {
  const { cluster } = context;
  const { deletionGracePeriodSeconds } = pod.metadata as { deletionGracePeriodSeconds?: number };
  if (!isFinished(pod)) {
    recordStop(cluster, pod);
    await stop(pod, context);
  }
  // Others hold it: their finalizers.
  if (deletionGracePeriodSeconds === 0) return;
  await cluster.remove("pods.", pod, { gracePeriodSeconds: 0 });
}

async function stop(pod: Pod, { cluster, now }: ControllerContext): Promise<void> {
  if (isScheduled(pod)) {
    const status = podStatus(pod, { stage: "stopped", outcome: "run", now: now(), exitCode: 0 });
    await cluster.update("pods.", { ...pod, status }, { subresource: "status", manager: "kubelet" });
    return;
  }
  // No kubelet knows it, so the garbage collector of Pods says that it has failed.
  await cluster.update("pods.", { ...pod, status: { ...pod.status, phase: "Failed" } }, { subresource: "status" });
}

/** Those that wait for a Node, and those that are on this one and may have to go. */
function podsOfNode(node: KubernetesObject, cluster: ControllerContext["cluster"]): string[] {
  const { name } = node.metadata;
  const isTainted = (node as Node).spec?.taints?.some(({ effect }) => effect === "NoExecute") === true;
  if (!isTainted) return waitingPods(node, cluster);
  const pods = cluster.list<Pod>("pods.").filter(({ spec }) => spec.nodeName === name);
  return [...waitingPods(node, cluster), ...pods.map(({ metadata }) => keyOfObject(metadata))];
}

function waitingPods(_: KubernetesObject, cluster: ControllerContext["cluster"]): string[] {
  const pods = cluster.list<Pod>("pods.").filter(({ spec }) => spec.nodeName === undefined);
  return pods.map(({ metadata }) => keyOfObject(metadata));
}

function noPods(): string[] {
  return [];
}
