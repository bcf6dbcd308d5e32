// What the kubelet tells of the containers of a Pod.
import type { Cluster } from "../feed/cluster.js";
import type { EventDetail } from "../events/event-recorder.js";
import type { Outcome } from "./outcome.js";
import type { Container, Pod, PodStatus } from "./pod.js";
import { CONFIG_ERROR, type ContainerStatus } from "./pod-status.js";

/** Tells what the change from one status to the next means: containers start, crash, or have no image. */
export function recordStart(
  cluster: Cluster,
  pod: Pod,
  { status, outcome }: { status: PodStatus; outcome: Outcome },
): void {
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

/** Tells which volumes the kubelet cannot mount. */
export function recordMounts(cluster: Cluster, pod: Pod, problems: readonly string[]): void {
  for (const message of problems) recorderOf(cluster, pod)({ type: "Warning", reason: "FailedMount", message });
}

/** Tells that the containers of a Pod that is deleted are stopped. */
export function recordStop(cluster: Cluster, pod: Pod): void {
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

/** Has the container run? */
function hasBegun(state: State | undefined): boolean {
  if (state === undefined) return false;
  return state.running !== undefined || state.terminated !== undefined || state.waiting?.reason === "CrashLoopBackOff";
}

function isWaitingForImage(status: PodStatus | undefined): boolean {
  return (status?.containerStatuses ?? []).some(({ state }) => state.waiting?.reason === "ImagePullBackOff");
}
