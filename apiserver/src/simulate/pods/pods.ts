// Simulates the scheduler and the kubelet: Pods are bound to a Node, become ready after a delay, run or finish, and are removed on deletion. No
// containers run.
import { elapsedMs } from "../../clock.js";
import type { EventDetail } from "../event-recorder.js";
import type { Cluster } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { type KubernetesObject, isSame, keyOfObject } from "../feed/kubernetes-object.js";
import { type MissingInputs, findMissingInputs } from "./pod-inputs.js";
import { CONFIG_ERROR, type ContainerStatus, type Outcome, planOf, planProblem, podStatus } from "./pod-status.js";
import { type Container, type Pod, type PodStatus, isFinished, timestamp, withConditions } from "./pod.js";
import { type Claim, type Node, type Placement, placementOf, toleratedMs } from "./schedule.js";

/** In-memory state of a Pod; the times in its status have second precision only. */
interface KnownPod {
  /** When the kubelet first saw the Pod, in monotonic milliseconds. */
  start: number;
  /** Number of failed checks for missing inputs. */
  attempts: number;
  /** Mount failures that were already recorded as Events. */
  mounts: string;
  /** When taints that the Pod does not tolerate indefinitely were first seen on its Node, in the time of the server. */
  taintedAt?: number | undefined;
}

/** Creates the controller that simulates the scheduler and the kubelet. */
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

/** Updates the status of a Pod; returns the milliseconds until its next change. */
async function run(pod: Pod, known: KnownPod, context: ControllerContext): Promise<number | undefined> {
  const { cluster, now, delayMs } = context;
  // The annotation is invalid but the Pod is already bound, so leave it as it is.
  if (planProblem(pod) !== undefined) return undefined;
  const { outcome, exitCode, readyAfterMs: readyAfter } = planOf(pod, delayMs);
  const isDue = elapsedMs() - known.start >= readyAfter;
  const missing = isDue && !hasAllInputs(pod) ? await findMissingInputs(pod, context) : NOTHING_MISSING;
  const isMounted = missing.mounts.length === 0;
  const lacksInput = !isMounted || (outcome !== "no-image" && missing.containers.size > 0);
  // The missing inputs exist now, so start the containers.
  if (!lacksInput && known.attempts > 0) Object.assign(known, { attempts: 0, start: elapsedMs() - readyAfter });
  const elapsed = elapsedMs() - known.start;
  const { restartPolicy = "Always" } = pod.spec;
  // A container that terminates and is always restarted never finishes: it runs or crash-loops.
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

/** Reports whether no container waits for inputs any more; inputs are only checked before the start. */
function hasAllInputs({ status }: Pod): boolean {
  if (status?.podIP === undefined) return false;
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return !all.some(
    ({ state }) => state.waiting?.reason === CONFIG_ERROR || state.waiting?.reason === "PodInitializing",
  );
}

/** Maximum restart delay of the kubelet for a crashing container (CrashLoopBackOff). */
const LONGEST_BACK_OFF_MS = 300_000;

/** Returns how often a container has crashed, with the delay doubling each time, and when it crashes next. */
function crashesAfter(elapsedMs: number, firstPauseMs: number): { count: number; nextMs: number } {
  let count = 1;
  let at = Math.max(firstPauseMs, 1);
  for (let pause = at; at <= elapsedMs; count++, at += pause) pause = Math.min(pause * 2, LONGEST_BACK_OFF_MS);
  return { count, nextMs: at - elapsedMs };
}

/**
 * Deletes a Pod that does not tolerate a NoExecute taint of its Node; returns the milliseconds until the eviction if it tolerates the taint for some
 * time.
 */
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

/** Reports whether the simulated scheduler is responsible for the Pod. */
function isOurs({ spec }: Pod): boolean {
  return spec.schedulerName === undefined || spec.schedulerName === "default-scheduler";
}

/** Binds a Pod to a Node, or sets its PodScheduled condition to false. */
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

/** Stops the containers of a deleted Pod, writes their final status, and removes the Pod. */
async function remove(pod: Pod, context: ControllerContext): Promise<void> {
  const { cluster } = context;
  const { deletionGracePeriodSeconds } = pod.metadata as { deletionGracePeriodSeconds?: number };
  if (!isFinished(pod)) {
    recordStop(cluster, pod);
    await stop(pod, context);
  }
  // Only finalizers still block the deletion.
  if (deletionGracePeriodSeconds === 0) return;
  await cluster.remove("pods.", pod, { gracePeriodSeconds: 0 });
}

async function stop(pod: Pod, { cluster, now }: ControllerContext): Promise<void> {
  if (isScheduled(pod)) {
    const status = podStatus(pod, { stage: "stopped", outcome: "run", now: now(), exitCode: 0 });
    await cluster.update("pods.", { ...pod, status }, { subresource: "status", manager: "kubelet" });
    return;
  }
  // The Pod was never bound to a Node, so the Pod garbage collector marks it as failed.
  await cluster.update("pods.", { ...pod, status: { ...pod.status, phase: "Failed" } }, { subresource: "status" });
}

/** Maps a Node to the unscheduled Pods, and to its own Pods if they may have to be evicted. */
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

// Events of the kubelet.

/** Records the Events of a status change: containers started, crashed, or failed to pull their image. */
function recordStart(cluster: Cluster, pod: Pod, { status, outcome }: { status: PodStatus; outcome: Outcome }): void {
  const { spec, metadata } = pod;
  const record = recorderOf(cluster, pod);
  for (const [container, fieldPath] of containersOf(pod)) {
    const { name, image = "" } = container;
    const [before, after] = [stateOf(pod.status, name), stateOf(status, name)];
    const pulled = `Container image "${image}" already present on machine and can be accessed by the pod`;
    const problem = configErrorOf(after);
    if (problem !== undefined && problem !== configErrorOf(before)) {
      record({ reason: "Pulled", message: pulled, fieldPath });
      record({ type: "Warning", reason: "Failed", message: `Error: ${problem}`, fieldPath });
    }
    if (!hasBegun(after) || hasBegun(before)) continue;
    record({ reason: "Pulled", message: pulled, fieldPath });
    record({ reason: "Created", message: "Container created", fieldPath });
    record({ reason: "Started", message: "Container started", fieldPath });
    if (outcome !== "crash" || spec.containers?.includes(container) !== true) continue;
    const who = `${metadata.name}_${metadata.namespace}(${metadata.uid})`;
    const message = `Back-off restarting failed container ${name} in pod ${who}`;
    record({ type: "Warning", reason: "BackOff", message, fieldPath });
  }
  if (outcome !== "no-image" || !isWaitingForImage(status) || isWaitingForImage(pod.status)) return;
  for (const { name, image } of spec.containers ?? []) {
    const fieldPath = `spec.containers{${name}}`;
    const problem = `Failed to pull image "${image}": the simulated Pod has no image`;
    record({ reason: "Pulling", message: `Pulling image "${image}"`, fieldPath });
    record({ type: "Warning", reason: "Failed", message: problem, fieldPath });
    record({ type: "Warning", reason: "Failed", message: "Error: ErrImagePull", fieldPath });
    record({ reason: "BackOff", message: `Back-off pulling image "${image}"`, fieldPath });
    record({ type: "Warning", reason: "Failed", message: "Error: ImagePullBackOff", fieldPath });
  }
}

/** Records an Event for each volume that cannot be mounted. */
function recordMounts(cluster: Cluster, pod: Pod, problems: readonly string[]): void {
  for (const message of problems) recorderOf(cluster, pod)({ type: "Warning", reason: "FailedMount", message });
}

/** Records an Event for each container that is stopped. */
function recordStop(cluster: Cluster, pod: Pod): void {
  if (pod.status?.phase !== "Running") return;
  for (const { name } of pod.spec.containers ?? []) {
    const message = `Stopping container ${name}`;
    recorderOf(cluster, pod)({ reason: "Killing", message, fieldPath: `spec.containers{${name}}` });
  }
}

function recorderOf(cluster: Cluster, pod: Pod): (detail: EventDetail) => void {
  const by = { kubelet: pod.spec.nodeName ?? "" };
  return (detail) => cluster.record("pods.", pod, { ...detail, by });
}

function containersOf({ spec }: Pod): [container: Container, fieldPath: string][] {
  const at = (containers: Container[] = [], field: string): [Container, string][] =>
    containers.map((container) => [container, `spec.${field}{${container.name}}`]);
  return [...at(spec.initContainers, "initContainers"), ...at(spec.containers, "containers")];
}

type State = ContainerStatus["state"];

function stateOf(status: PodStatus | undefined, name: string): State | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find((one) => one.name === name)?.state;
}

function configErrorOf(state: State | undefined): string | undefined {
  return state?.waiting?.reason === CONFIG_ERROR ? state.waiting.message : undefined;
}

/** Reports whether the container has been started. */
function hasBegun(state: State | undefined): boolean {
  if (state === undefined) return false;
  return state.running !== undefined || state.terminated !== undefined || state.waiting?.reason === "CrashLoopBackOff";
}

function isWaitingForImage(status: PodStatus | undefined): boolean {
  return (status?.containerStatuses ?? []).some(({ state }) => state.waiting?.reason === "ImagePullBackOff");
}
