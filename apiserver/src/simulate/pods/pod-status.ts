import { createHash } from "node:crypto";
import { type Outcome, readSimulation } from "../../simulate-annotations.js";
import { type Container, type Pod, type PodStatus, type StatusCondition, keepTimes, timestamp } from "./pod.js";

/** Stage of the containers of a Pod: waiting to start, running, terminated, or stopped by the kubelet. */
type PodStage = "starting" | "running" | "ended" | "stopped";

/** Progress of the containers of a Pod. */
interface PodProgress {
  stage: PodStage;
  outcome: Outcome;
  now: Date;
  /** Exit code of failing containers. */
  exitCode: number;
  /** Number of restarts of crashing containers. */
  restarts?: number;
  /** Messages of containers that cannot be created, by container name. */
  configErrors?: ReadonlyMap<string, string>;
}

/** IP of the Node of the simulated Pods. */
export const HOST_IP = "10.0.0.1";

/** Waiting reason of a container whose environment refers to a missing object. */
export const CONFIG_ERROR = "CreateContainerConfigError";

/** Builds the status that the kubelet reports: phase, conditions, addresses, and container statuses. */
export function podStatus(pod: Pod, progress: PodProgress): PodStatus {
  const { metadata, spec, status } = pod;
  const startTime = status?.startTime ?? timestamp(progress.now);
  const context: StatesContext = { ...progress, startTime, time: timestamp(progress.now), uid: metadata.uid };
  const initStatuses = initContainerStatuses(pod, context);
  const isInitialized = initStatuses.every(isPassed);
  const statuses = containerStatuses(spec.containers, status?.containerStatuses, (container, old) =>
    mainState(container, { ...context, isInitialized }, old),
  );
  const phase = phaseOf(context, statuses);
  const hasSandbox = progress.stage === "running" || progress.stage === "ended";
  const address = hasSandbox && progress.outcome !== "no-image" ? addressOf(metadata.uid) : undefined;
  const conditions = podConditions(pod, { ...context, phase, initStatuses, statuses });
  return {
    ...status,
    observedGeneration: metadata.generation ?? 1,
    phase,
    conditions: mergedConditions(status?.conditions ?? [], conditions),
    startTime,
    hostIP: HOST_IP,
    hostIPs: [{ ip: HOST_IP }],
    ...(address === undefined ? {} : { podIP: address, podIPs: [{ ip: address }] }),
    ...(initStatuses.length === 0 ? {} : { initContainerStatuses: initStatuses }),
    containerStatuses: statuses,
  };
}

/** True for a sidecar: an init container with restartPolicy Always. */
function isSidecar({ restartPolicy }: Container): boolean {
  return restartPolicy === "Always";
}

interface StatesContext extends PodProgress {
  startTime: string;
  time: string;
  uid: string;
}

export interface ContainerStatus extends ContainerState {
  name: string;
}

interface ContainerState {
  ready: boolean;
  started: boolean;
  restartCount: number;
  state: {
    waiting?: { reason?: string; message?: string };
    running?: { startedAt?: string };
    terminated?: Termination;
  };
  lastState: { terminated?: Termination };
}

interface Termination {
  exitCode: number;
  reason?: string;
  [member: string]: unknown;
}

function phaseOf({ stage, outcome, configErrors }: StatesContext, statuses: ContainerStatus[]): string {
  if (stage === "stopped") return statuses.every(hasSucceeded) ? "Succeeded" : "Failed";
  if (stage === "starting" || outcome === "no-image" || (configErrors?.size ?? 0) > 0) return "Pending";
  if (stage === "ended") return outcome === "fail" ? "Failed" : "Succeeded";
  return "Running";
}

function hasSucceeded({ state }: ContainerState): boolean {
  return state.terminated?.exitCode === 0;
}

/** Reports whether the next init container may start. */
function isPassed(status: ContainerState): boolean {
  return hasSucceeded(status) || status.started;
}

function podConditions(
  { metadata, spec, status }: Pod,
  context: StatesContext & { phase: string; initStatuses: ContainerStatus[]; statuses: ContainerStatus[] },
): StatusCondition[] {
  const { stage, outcome, time, phase, initStatuses, statuses } = context;
  const isOver = phase === "Failed" || phase === "Succeeded";
  const hasStarted = stage === "running" && outcome !== "no-image";
  const sidecars = (spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name);
  const counted = [...initStatuses.filter(({ name }) => sidecars.includes(name)), ...statuses];
  const unreadyNames = counted.filter(({ ready }) => !ready).map(({ name }) => name);
  const incomplete = initStatuses.filter((one) => !isPassed(one)).map(({ name }) => name);
  const isInitialized = incomplete.length === 0 || isOver;
  const areReady = !isOver && unreadyNames.length === 0;
  const open = (spec.readinessGates ?? []).filter(
    ({ conditionType }) => !status?.conditions?.some(({ type, status }) => type === conditionType && status === "True"),
  );
  const unready = isOver
    ? { reason: phase === "Failed" ? "PodFailed" : "PodCompleted" }
    : { reason: "ContainersNotReady", message: `containers with unready status: [${unreadyNames.join(" ")}]` };
  const uninitialized = {
    reason: "ContainersNotInitialized",
    message: `containers with incomplete status: [${incomplete.join(" ")}]`,
  };
  const gated = {
    reason: "ReadinessGatesNotReady",
    message: `corresponding condition of pod readiness gate "${open[0]?.conditionType}" does not exist.`,
  };
  const completed = phase === "Succeeded" ? { reason: "PodCompleted" } : {};
  const conditions: [type: string, holds: boolean, why?: object][] = [
    ["PodReadyToStartContainers", hasStarted],
    ["Initialized", isInitialized, isInitialized ? completed : uninitialized],
    ["Ready", areReady && open.length === 0, areReady ? (open.length === 0 ? {} : gated) : unready],
    ["ContainersReady", areReady, areReady ? {} : unready],
    ["PodScheduled", true],
  ];
  return conditions.map(([type, holds, why = {}]) => ({
    type,
    status: holds ? "True" : "False",
    lastProbeTime: null,
    lastTransitionTime: time,
    ...why,
    observedGeneration: metadata.generation ?? 1,
  }));
}

/** Returns the conditions of the kubelet in its order, then those of other clients. */
function mergedConditions(before: StatusCondition[], ours: StatusCondition[]): StatusCondition[] {
  const others = before.filter(({ type }) => !ours.some((condition) => condition.type === type));
  return [...keepTimes(ours, before), ...others];
}

const FRESH = { restartCount: 0, lastState: {} };
const IDLE = { ...FRESH, ready: false, started: false };

/** Init containers run sequentially; sidecars keep running. */
function initContainerStatuses({ spec, status }: Pod, context: StatesContext): ContainerStatus[] {
  let isBlocked = context.stage === "starting";
  return containerStatuses(spec.initContainers, status?.initContainerStatuses, (container, old) => {
    if (context.stage === "stopped") return stoppedState(old, context);
    if (isBlocked) return { ...IDLE, state: waiting("PodInitializing") };
    const problem = context.configErrors?.get(container.name);
    if (problem !== undefined) {
      isBlocked = true;
      return { ...IDLE, state: waiting(CONFIG_ERROR, problem) };
    }
    if (isSidecar(container) && context.stage === "running") {
      return { ...FRESH, ready: true, started: true, state: { running: { startedAt: context.time } } };
    }
    return { ...FRESH, ready: !isSidecar(container), started: false, state: terminated(0, context) };
  });
}

function mainState(
  { name }: Container,
  context: StatesContext & { isInitialized: boolean },
  old: ContainerStatus | undefined,
): ContainerState {
  const { stage, outcome, exitCode, restarts = 0, time, isInitialized } = context;
  if (stage === "stopped") return stoppedState(old, context);
  if (!isInitialized) return { ...IDLE, state: waiting("PodInitializing") };
  if (stage === "starting") return { ...IDLE, state: waiting("ContainerCreating") };
  if (outcome === "no-image") return { ...IDLE, state: waiting("ImagePullBackOff", "Back-off pulling image") };
  const problem = context.configErrors?.get(name);
  if (problem !== undefined) return { ...IDLE, state: waiting(CONFIG_ERROR, problem) };
  if (stage === "ended") return { ...IDLE, state: terminated(outcome === "fail" ? exitCode : 0, context) };
  if (outcome === "crash") {
    return {
      ...IDLE,
      restartCount: restarts,
      state: waiting("CrashLoopBackOff", "back-off 10s restarting failed container"),
      lastState: old?.restartCount === restarts ? old.lastState : terminated(exitCode, context),
    };
  }
  return { ...FRESH, ready: outcome !== "unready", started: true, state: { running: { startedAt: time } } };
}

/** Exit code of a process that SIGTERM terminated. */
const STOPPED_CODE = 143;

/** The terminated state of a container of a deleted Pod. The kubelet reports a container that it cannot find as failed. */
function stoppedState(old: ContainerStatus | undefined, context: StatesContext): ContainerState {
  const { restartCount, lastState } = old ?? FRESH;
  const idle = { ...IDLE, restartCount, lastState };
  if (old?.state.terminated !== undefined) return { ...idle, state: old.state };
  if (old?.state.running !== undefined) {
    const { startedAt = context.startTime } = old.state.running;
    return { ...idle, state: terminated(STOPPED_CODE, { ...context, startTime: startedAt }) };
  }
  if (old?.lastState.terminated !== undefined) return { ...idle, lastState: {}, state: old.lastState };
  const message = "The container could not be located when the pod was terminated";
  const times = { startedAt: null, finishedAt: null };
  return { ...idle, state: { terminated: { exitCode: 137, reason: "ContainerStatusUnknown", message, ...times } } };
}

function waiting(reason: string, message?: string) {
  return { waiting: { ...(message === undefined ? {} : { message }), reason } };
}

function terminated(exitCode: number, { startTime, time, uid }: StatesContext): { terminated: Termination } {
  const reason = exitCode === 0 ? "Completed" : "Error";
  const times = { startedAt: startTime, finishedAt: time };
  return { terminated: { exitCode, reason, ...times, containerID: `simulated://${uid}` } };
}

/** Builds container statuses. A container that is already running keeps its start time. */
function containerStatuses(
  containers: Container[] = [],
  before: ContainerStatus[] = [],
  stateOf: (container: Container, old: ContainerStatus | undefined) => ContainerState,
): ContainerStatus[] {
  return containers.map((container) => {
    const { name, image = "" } = container;
    const old = before.find((status) => status.name === name);
    const state = stateOf(container, old);
    const kept = old !== undefined && isSameState(old.state, state.state) ? { state: old.state } : {};
    return { name, image, imageID: `simulated://${image}`, ...state, ...kept };
  });
}

function isSameState(before: object, state: object): boolean {
  return Object.keys(before)[0] === Object.keys(state)[0] && !("waiting" in state);
}

/** Returns an IP derived from the UID, so it is stable. */
function addressOf(uid: string): string {
  const digest = createHash("sha256").update(uid).digest();
  return `10.244.${digest[0]}.${Math.max(1, Math.min(254, digest[1] ?? 1))}`;
}

export type { Outcome };

/** Simulated behavior of a Pod. */
interface PodPlan {
  outcome: Outcome;
  /** Exit code of failing containers. */
  exitCode: number;
  /** Milliseconds until the Pod is ready. */
  readyAfterMs: number;
}

/** Returns the simulated behavior of a Pod. Default: Pods of Jobs succeed, all others run. Throws an Error if an annotation is invalid. */
export function planOf({ metadata }: Pod, delayMs: number): PodPlan {
  const isOfJob = metadata.ownerReferences?.some(({ kind, controller }) => kind === "Job" && controller === true);
  return {
    outcome: isOfJob === true ? "succeed" : "run",
    ...{ exitCode: 1, readyAfterMs: delayMs },
    ...readSimulation(metadata.annotations),
  };
}

/** Returns the error message of an invalid annotation, or undefined. */
export function planProblem(pod: Pod): string | undefined {
  try {
    planOf(pod, 0);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
