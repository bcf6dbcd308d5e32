import { countAt, objectsAt, textAt } from "../builtin/read-path.js";
import { type JsonObject, isObject, memberOf, objectAt, stringAt } from "../json.js";
import { ageOf } from "./age.js";
import type { Printer } from "./printer.js";

export const podPrinter: Printer = {
  columns: ["Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"],
  cells: (pod, now) => {
    const summary = summaryOf(pod);
    const orNone = (text: string) => (text === "" ? "<none>" : text);
    return [
      `${summary.ready}/${summary.total}`,
      summary.reason,
      restartsOf(summary, now),
      ageOf(textAt(pod, "metadata.creationTimestamp"), now),
      orNone(textAt(pod, "status.podIP")),
      orNone(textAt(pod, "spec.nodeName")),
      orNone(textAt(pod, "status.nominatedNodeName")),
      readinessGatesOf(pod),
    ];
  },
};

interface Summary {
  reason: string;
  ready: number;
  total: number;
  restarts: number;
  lastRestart: string;
}

function summaryOf(pod: JsonObject): Summary {
  const initContainers = objectsAt(pod, "spec.initContainers");
  const sidecars = new Set(initContainers.filter(isSidecar).map((container) => stringAt(container, "name")));
  const summary: Summary = {
    reason: startReasonOf(pod),
    ready: 0,
    total: objectsAt(pod, "spec.containers").length + sidecars.size,
    restarts: 0,
    lastRestart: "",
  };
  const isInitializing = summarizeInitContainers(pod, sidecars, summary);
  if (!isInitializing || hasCondition(pod, "Initialized")) summarizeContainers(pod, sidecars, summary);
  if (memberOf(objectAt(pod, "metadata"), "deletionTimestamp") !== undefined) {
    const phase = textAt(pod, "status.phase");
    if (textAt(pod, "status.reason") === "NodeLost") summary.reason = "Unknown";
    else if (phase !== "Failed" && phase !== "Succeeded") summary.reason = "Terminating";
  }
  return summary;
}

function startReasonOf(pod: JsonObject): string {
  const isGated = objectsAt(pod, "status.conditions").some(
    (condition) => condition["type"] === "PodScheduled" && condition["reason"] === "SchedulingGated",
  );
  return isGated ? "SchedulingGated" : textAt(pod, "status.reason") || textAt(pod, "status.phase");
}

function isSidecar(container: JsonObject): boolean {
  return container["restartPolicy"] === "Always";
}

// Returns true if an init container has not finished yet, and sets the reason.
function summarizeInitContainers(pod: JsonObject, sidecars: Set<string | undefined>, summary: Summary): boolean {
  const total = objectsAt(pod, "spec.initContainers").length;
  for (const [index, status] of objectsAt(pod, "status.initContainerStatuses").entries()) {
    noteRestarts(status, summary);
    const state = objectAt(status, "state");
    const terminated = objectAt(state, "terminated");
    if (terminated?.["exitCode"] === 0) continue;
    if (sidecars.has(stringAt(status, "name")) && status["started"] === true) {
      if (status["ready"] === true) summary.ready++;
      continue;
    }
    const waiting = stringAt(objectAt(state, "waiting"), "reason") ?? "";
    if (terminated !== undefined) summary.reason = `Init:${endReasonOf(terminated)}`;
    else if (waiting !== "" && waiting !== "PodInitializing") summary.reason = `Init:${waiting}`;
    else summary.reason = `Init:${index}/${total}`;
    return true;
  }
  return false;
}

function summarizeContainers(pod: JsonObject, sidecars: Set<string | undefined>, summary: Summary): void {
  const initStatuses = objectsAt(pod, "status.initContainerStatuses");
  const sidecarStatuses = initStatuses.filter((status) => sidecars.has(stringAt(status, "name")));
  // Restarts of finished init containers are not counted.
  summary.restarts = 0;
  summary.lastRestart = "";
  for (const status of sidecarStatuses) noteRestarts(status, summary);
  let isAnyRunning = false;
  for (const status of objectsAt(pod, "status.containerStatuses").reverse()) {
    noteRestarts(status, summary);
    const state = objectAt(status, "state");
    const waiting = stringAt(objectAt(state, "waiting"), "reason") ?? "";
    const terminated = objectAt(state, "terminated");
    if (waiting !== "") summary.reason = waiting;
    else if (terminated !== undefined) summary.reason = endReasonOf(terminated);
    else if (status["ready"] === true && isObject(memberOf(state, "running"))) {
      isAnyRunning = true;
      summary.ready++;
    }
  }
  if (summary.reason === "Completed" && isAnyRunning) {
    summary.reason = hasCondition(pod, "Ready") ? "Running" : "NotReady";
  }
}

function endReasonOf(terminated: JsonObject): string {
  const reason = stringAt(terminated, "reason") ?? "";
  if (reason !== "") return reason;
  const signal = countAt(terminated, "signal");
  return signal === 0 ? `ExitCode:${countAt(terminated, "exitCode")}` : `Signal:${signal}`;
}

function noteRestarts(status: JsonObject, summary: Summary): void {
  summary.restarts += countAt(status, "restartCount");
  const finished = textAt(status, "lastState.terminated.finishedAt");
  if (finished > summary.lastRestart) summary.lastRestart = finished;
}

function restartsOf({ restarts, lastRestart }: Summary, now: Date): string {
  return restarts === 0 || lastRestart === "" ? String(restarts) : `${restarts} (${ageOf(lastRestart, now)} ago)`;
}

function hasCondition(pod: JsonObject, type: string): boolean {
  return objectsAt(pod, "status.conditions").some((one) => one["type"] === type && one["status"] === "True");
}

function readinessGatesOf(pod: JsonObject): string {
  const gates = objectsAt(pod, "spec.readinessGates");
  if (gates.length === 0) return "<none>";
  return `${gates.filter((gate) => hasCondition(pod, stringAt(gate, "conditionType") ?? "")).length}/${gates.length}`;
}
