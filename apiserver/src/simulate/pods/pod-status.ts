import { createHash } from "node:crypto";
import type { Outcome } from "./outcome.js";
import { type Container, type Pod, type PodStatus, type StatusCondition, keepTimes, timestamp } from "./pod.js";

/** The stage that the containers of a Pod are at: the images come, they run, they have ended. */
export type PodStage = "starting" | "running" | "ended";

/** Where the simulated Pods run. */
export const HOST_IP = "10.0.0.1";

/** Returns what the kubelet writes: phase, conditions, addresses, and the state of every container. */
export function podStatus(
  pod: Pod,
  { stage, outcome, now }: { stage: PodStage; outcome: Outcome; now: Date },
): PodStatus {
  const { metadata, spec, status } = pod;
  const startTime = status?.startTime ?? timestamp(now);
  const context: StatesContext = { stage, outcome, startTime, now: timestamp(now), uid: metadata.uid };
  const hasStarted = stage !== "starting" && outcome !== "no-image";
  const address = hasStarted ? addressOf(metadata.uid) : undefined;
  const initContainers = spec.initContainers ?? [];
  return {
    ...status,
    observedGeneration: metadata.generation ?? 1,
    phase: phaseOf(stage, outcome),
    conditions: mergedConditions(status?.conditions ?? [], podConditions(pod, context)),
    startTime,
    hostIP: HOST_IP,
    hostIPs: [{ ip: HOST_IP }],
    ...(address === undefined ? {} : { podIP: address, podIPs: [{ ip: address }] }),
    ...(initContainers.length === 0
      ? {}
      : {
          initContainerStatuses: containerStatuses(initContainers, status?.initContainerStatuses, initState(context)),
        }),
    containerStatuses: containerStatuses(spec.containers, status?.containerStatuses, mainState(context)),
  };
}

function phaseOf(stage: PodStage, outcome: Outcome): string {
  if (stage === "starting" || outcome === "no-image") return "Pending";
  if (stage === "ended") return outcome === "fail" ? "Failed" : "Succeeded";
  return "Running";
}

interface StatesContext {
  stage: PodStage;
  outcome: Outcome;
  startTime: string;
  now: string;
  uid: string;
}

function podConditions({ metadata, spec, status }: Pod, { stage, outcome, now }: StatesContext): StatusCondition[] {
  const hasStarted = stage !== "starting" && outcome !== "no-image";
  const isRunning = stage === "running" && (outcome === "run" || outcome === "succeed" || outcome === "fail");
  const open = (spec.readinessGates ?? []).filter(
    ({ conditionType }) => !status?.conditions?.some(({ type, status }) => type === conditionType && status === "True"),
  );
  const names = (spec.containers ?? []).map(({ name }) => name).join(" ");
  const unready = {
    reason: stage === "ended" ? (outcome === "fail" ? "PodFailed" : "PodCompleted") : "ContainersNotReady",
    ...(stage === "ended" ? {} : { message: `containers with unready status: [${names}]` }),
  };
  const gated = {
    reason: "ReadinessGatesNotReady",
    message: `corresponding condition of pod readiness gate "${open[0]?.conditionType}" does not exist.`,
  };
  const conditions: [type: string, holds: boolean, why?: object][] = [
    ["PodReadyToStartContainers", hasStarted && stage !== "ended"],
    [
      "Initialized",
      hasStarted || (spec.initContainers ?? []).length === 0,
      stage === "ended" && outcome !== "fail" ? { reason: "PodCompleted" } : {},
    ],
    ["Ready", isRunning && open.length === 0, isRunning ? (open.length === 0 ? {} : gated) : unready],
    ["ContainersReady", isRunning, isRunning ? {} : unready],
    ["PodScheduled", true],
  ];
  return conditions.map(([type, holds, why = {}]) => ({
    type,
    status: holds ? "True" : "False",
    lastProbeTime: null,
    lastTransitionTime: now,
    ...(type === "Initialized" && !holds ? {} : why),
    observedGeneration: metadata.generation ?? 1,
  }));
}

/** The kubelet's conditions in its order, then those that others set. */
function mergedConditions(before: StatusCondition[], ours: StatusCondition[]): StatusCondition[] {
  const others = before.filter(({ type }) => !ours.some((condition) => condition.type === type));
  return [...keepTimes(ours, before), ...others];
}

interface ContainerState {
  ready: boolean;
  started: boolean;
  restartCount: number;
  state: object;
  lastState: object;
}

const FRESH = { restartCount: 0, lastState: {} };

function initState({ stage, startTime, now, uid }: StatesContext): ContainerState {
  if (stage === "starting") return { ...FRESH, ready: false, started: false, state: waiting("PodInitializing") };
  return { ...FRESH, ready: true, started: false, state: terminated({ exitCode: 0, startTime, now, uid }) };
}

function mainState({ stage, outcome, startTime, now, uid }: StatesContext): ContainerState {
  const idle = { ...FRESH, ready: false, started: false };
  if (outcome === "no-image") return { ...idle, state: waiting("ImagePullBackOff", "Back-off pulling image") };
  if (stage === "starting") return { ...idle, state: waiting("ContainerCreating") };
  if (stage === "ended") {
    return { ...idle, state: terminated({ exitCode: outcome === "fail" ? 1 : 0, startTime, now, uid }) };
  }
  if (outcome === "crash") {
    const lastState = terminated({ exitCode: 1, startTime, now, uid });
    return {
      ...idle,
      restartCount: 1,
      state: waiting("CrashLoopBackOff", "back-off 10s restarting failed container"),
      lastState,
    };
  }
  return { ...FRESH, ready: outcome !== "unready", started: true, state: { running: { startedAt: now } } };
}

function waiting(reason: string, message?: string): object {
  return { waiting: { ...(message === undefined ? {} : { message }), reason } };
}

function terminated(end: { exitCode: number; startTime: string; now: string; uid: string }): object {
  const { exitCode, startTime, now, uid } = end;
  const reason = exitCode === 0 ? "Completed" : "Error";
  return { terminated: { exitCode, reason, startedAt: startTime, finishedAt: now, containerID: `simulated://${uid}` } };
}

/** States of containers; one that runs already has its time of start. */
function containerStatuses(containers: Container[] = [], before: object[] = [], state: ContainerState): object[] {
  const olds = before as { name: string; state?: { running?: object; terminated?: object } }[];
  return containers.map(({ name, image = "" }) => {
    const old = olds.find((status) => status.name === name);
    const kept = sameState(old?.state, state.state) ? { state: old?.state } : {};
    return { name, image, imageID: `simulated://${image}`, ...state, ...kept };
  });
}

function sameState(before: object | undefined, state: object): boolean {
  return before !== undefined && Object.keys(before)[0] === Object.keys(state)[0] && !("waiting" in state);
}

/** An address that stays with the pod. */
function addressOf(uid: string): string {
  const digest = createHash("sha256").update(uid).digest();
  return `10.244.${digest[0]}.${Math.max(1, Math.min(254, digest[1] ?? 1))}`;
}
