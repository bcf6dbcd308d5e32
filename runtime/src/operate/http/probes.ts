// Probes in the words of Kubernetes' own components (apiserver/pkg/server/healthz): `ok`, or every check with what is wrong.
import { memberOf } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import { withDeadline } from "../../base/promises.js";
import type { SourceHealth } from "../../base/activity.js";
import type { ControllerHealth, ObservedOperator } from "../health.js";
import type { LeadershipState } from "../lease/leadership.js";
import type { EndpointAnswer, EndpointHandler } from "./http-endpoint.js";

/** One thing that a probe looks at. */
export interface Check {
  readonly name: string;
  /** What is wrong; absent if nothing is. */
  readonly problem?: string | undefined;
  /** What else there is to know. */
  readonly note?: string | undefined;
}

/** A check of the user: throws, or rejects, if something is wrong. */
export type UserCheck = () => unknown;

/** What the probes of an operator look at besides the operator. */
export interface ProbeChecks {
  /** By name. One that fails has the kubelet restart the process: nothing that the API server, or another service, may cause belongs here. */
  readonly live?: { readonly [name: string]: UserCheck };
  /** By name. One that fails makes the pod unready. */
  readonly ready?: { readonly [name: string]: UserCheck };
}

/** What the probes ask. */
export interface ProbeSubject extends Pick<ObservedOperator, "health" | "controllers"> {
  /** Whether all that is watched was known once. */
  hasStarted(): boolean;
  readonly checks: ProbeChecks;
}

// Less than the kubelet waits for an answer. Default of timeoutSeconds: 1
const CHECK_TIMEOUT_MS = 900;

/** Returns what answers `/livez`, `/readyz` and `/startupz`, and `/healthz`, which kubebuilder calls the first of them. */
export function probeHandler(subject: ProbeSubject): EndpointHandler {
  const { checks } = subject;
  const probes: { readonly [path: string]: () => Promise<readonly Check[]> | readonly Check[] } = {
    "/livez": async () => [{ name: "ping" }, ...(await checksOf(checks.live))],
    "/readyz": async () => [...readinessOf(subject), ...(await checksOf(checks.ready))],
    "/startupz": () => startOf(subject),
  };
  return async ({ pathname, searchParams }) => {
    const path = pathname === "/healthz" ? "/livez" : pathname;
    const probe = memberOf(probes, path);
    if (probe === undefined) return undefined;
    const excluded = new Set(searchParams.getAll("exclude"));
    const found = (await probe()).filter(({ name }) => !excluded.has(name));
    return report(pathname.slice(1), found, { isVerbose: searchParams.has("verbose") });
  };
}

function report(probe: string, checks: readonly Check[], { isVerbose }: { isVerbose: boolean }): EndpointAnswer {
  const isPassed = checks.every(({ problem }) => problem === undefined);
  if (isPassed && !isVerbose) return { status: 200, body: "ok" };
  const lines = checks.map(({ name, problem, note }) =>
    problem === undefined ? `[+]${name} ok${note === undefined ? "" : `: ${note}`}` : `[-]${name} failed: ${problem}`,
  );
  const end = `${probe} check ${isPassed ? "passed" : "failed"}`;
  return { status: isPassed ? 200 : 503, body: [...lines, end, ""].join("\n") };
}

function readinessOf(subject: ProbeSubject): readonly Check[] {
  const { status, controllers, leadership } = subject.health();
  const operator: Check = { name: "operator", problem: status === "stopped" ? "it is stopped, or stops" : undefined };
  const sources = Object.entries(controllers).flatMap(([controller, health]) => [
    checkOfService(subject, controller, health),
    ...Object.entries(health.sources).map(([name, source]) =>
      checkOfSource(`controller/${controller}/${name}`, source),
    ),
  ]);
  return [operator, ...sources, ...(leadership === undefined ? [] : [checkOfLeadership(leadership)])];
}

// A controller is ready while it serves one namespace: to restart it would help the others no more than it does itself.
function checkOfService(subject: ProbeSubject, controller: string, { isStarted, waiting }: ControllerHealth): Check {
  const start = checkOfStart(subject, controller, isStarted);
  const problem = subject.controllers().find(({ definition }) => definition.name === controller)?.problem;
  if (start.problem !== undefined) return start;
  if (problem !== undefined) return { ...start, problem: `no namespace can be served: ${problem}` };
  const count = waiting.count === 1 ? "1 primary waits" : `${waiting.count} primaries wait`;
  return waiting.count === 0 ? start : { ...start, note: `${count} for a watch: ${waiting.primaries[0]!.reason}` };
}

function checkOfSource(name: string, { status, reason = "it does not say why", ...health }: SourceHealth): Check {
  if (status === "unknown") return { name, note: "it does not run now" };
  if (status === "healthy") return { name };
  if (health.isUnserved === true && !name.endsWith("/primary")) return { name, note: `has no objects: ${reason}` };
  const isPartial = Object.values(health.namespaces ?? {}).some((each) => each.status === "synced");
  return isPartial ? { name, note: `fails in part: ${reason}` } : { name, problem: reason };
}

// A replica that stands by is ready: otherwise no rolling update would get past the first.
function checkOfLeadership({ isLeading, leader, problem }: LeadershipState): Check {
  const name = "leader-election";
  if (problem !== undefined) return { name, problem: `nobody leads as far as this replica knows: ${problem}` };
  const holder = leader === undefined ? "nobody" : `"${leader}"`;
  return { name, note: isLeading ? "this one leads" : `stands by, ${holder} leads` };
}

function startOf(subject: ProbeSubject): readonly Check[] {
  if (subject.hasStarted()) return [{ name: "started" }];
  const { controllers } = subject.health();
  const starts = Object.entries(controllers).map(([name, { isStarted }]) => checkOfStart(subject, name, isStarted));
  return [{ name: "started", problem: "not all that is watched is known yet" }, ...starts];
}

function checkOfStart(subject: ProbeSubject, controller: string, isStarted: boolean): Check {
  const name = `controller/${controller}`;
  if (isStarted) return { name };
  const found = subject.controllers().find(({ definition }) => definition.name === controller);
  return { name, problem: found?.failures.join("; ") || "it has not begun" };
}

async function checksOf(checks: ProbeChecks["live"] = {}): Promise<readonly Check[]> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        await withDeadline(() => check(), { timeoutMs: CHECK_TIMEOUT_MS });
        return { name };
      } catch (error) {
        return { name, problem: messageOf(error) };
      }
    }),
  );
}
