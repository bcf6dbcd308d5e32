// Health of an operator and its controllers, and the probe endpoints for the kubelet.
import type {
  ControllerActivity,
  InformerActivity,
  PostponedWrite,
  SourceHealth,
  WaitingPrimaries,
} from "../base/activity.js";
import { memberOf } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { withDeadline } from "../base/wait.js";
import type { ControllerDetails, GivenUp } from "../queue/controller-details.js";
import type { Suspect } from "../queue/work-queue.js";
import type { EndpointAnswer, EndpointHandler } from "./http-endpoint.js";
import type { LeadershipState } from "./leader-election.js";

/** Health of a controller. */
export interface ControllerHealth {
  /** Whether its caches are synced as far as possible, so that it reconciles, or will once the operator leads. */
  readonly isStarted: boolean;
  /** Primaries waiting for a watch of their secondaries. */
  readonly waiting: WaitingPrimaries;
  /** Health of each event source, by name. */
  readonly sources: { readonly [name: string]: SourceHealth };
  /** Primaries with exhausted retries. They do not affect the status of the operator. */
  readonly givenUp: GivenUp;
  /**
   * Primaries whose deletion is blocked, or whose objects remain, until a user resolves the `reason`. They do not affect the status of the operator.
   */
  readonly stuck: WaitingPrimaries;
  /** Writes postponed because of write loops. They do not affect the status of the operator. */
  readonly postponed: readonly PostponedWrite[];
}

/** Health of an operator. */
export interface OperatorHealth {
  /** `starting` until every controller reconciles, or would if this replica led; `unhealthy` if any event source is unhealthy. */
  readonly status: "stopped" | "starting" | "healthy" | "unhealthy";
  /** The controllers, by name. */
  readonly controllers: { readonly [name: string]: ControllerHealth };
  /** The leader election state; absent without leader election. */
  readonly leadership?: LeadershipState | undefined;
}

/** A controller, as the endpoints and metrics read it. */
interface ObservedController extends Omit<ControllerHealth, "sources"> {
  readonly definition: { readonly name: string };
  /** Why it cannot start, or what is wrong with its event sources. */
  readonly failures: readonly string[];
  /** Why it cannot reconcile primaries in any namespace; undefined if it can in at least one. */
  readonly problem: string | undefined;
  /** The number of paused primaries. */
  readonly paused: number;
  health(): ControllerHealth["sources"];
  activity(): ControllerActivity;
  details(): ControllerDetails;
}

/** An operator, as the endpoints and metrics read it. */
export interface ObservedOperator {
  health(): OperatorHealth;
  /** Empty until the operator has connected to its API server. */
  controllers(): readonly ObservedController[];
  informers(): readonly InformerActivity[];
  /** Primaries that are reconciled last, because their functions blocked the event loop. Default: none */
  suspects?(): readonly Suspect[];
}

/**
 * Aggregates the health of the controllers. `count` is the number of controllers that are to be created. If `controllers` is undefined, the operator
 * is stopped.
 */
export function healthOf(controllers: readonly ObservedController[] | undefined, count: number): OperatorHealth {
  if (controllers === undefined) return { status: "stopped", controllers: {} };
  const all = controllers.map((each) => {
    const { isStarted, waiting, givenUp, stuck, postponed } = each;
    return [each.definition.name, { isStarted, sources: each.health(), waiting, givenUp, stuck, postponed }] as const;
  });
  const isComplete = all.length === count && all.every(([, { isStarted }]) => isStarted);
  const sources = all.flatMap(([, health]) => Object.values(health.sources));
  const isUnhealthy = sources.some(({ status }) => status === "unhealthy");
  const status = isUnhealthy ? "unhealthy" : isComplete ? "healthy" : "starting";
  return { status, controllers: Object.fromEntries(all) };
}

// Probes answer like those of Kubernetes components (apiserver/pkg/server/healthz): `ok`, or a list of all checks with their failures.

/** A check of a probe. */
interface Check {
  readonly name: string;
  /** Why the check fails; absent if it passes. */
  readonly problem?: string | undefined;
  /** Additional information. */
  readonly note?: string | undefined;
}

/** A check of the user; fails if it throws or rejects. */
export type UserCheck = () => unknown;

/** Additional checks of the probes. */
export interface ProbeChecks {
  /** Liveness checks by name. If one fails, the kubelet restarts the container: do not check the API server or another service here. */
  readonly live?: { readonly [name: string]: UserCheck };
  /** Readiness checks by name. If one fails, the Pod is not ready. */
  readonly ready?: { readonly [name: string]: UserCheck };
}

export interface ProbeSubject extends Pick<ObservedOperator, "health" | "controllers"> {
  /** Whether all caches have synced once. */
  hasStarted(): boolean;
  readonly checks: ProbeChecks;
}

// Less than the default timeoutSeconds of a probe, which is 1.
const CHECK_TIMEOUT_MS = 900;

/** Returns the handler of `/livez`, `/readyz`, `/startupz`, and `/healthz`, which is kubebuilder's name for `/livez`. */
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

// A controller is ready while it serves at least one namespace: a restart would not help the others.
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

// A standby replica is ready: otherwise a rolling update would never complete.
function checkOfLeadership({ isLeading, leader, problem }: LeadershipState): Check {
  const name = "leader-election";
  if (problem !== undefined) return { name, problem: `no leader is known to this replica: ${problem}` };
  const holder = leader === undefined ? "unknown" : `"${leader}"`;
  return { name, note: isLeading ? "this replica is the leader" : `standing by, leader is ${holder}` };
}

function startOf(subject: ProbeSubject): readonly Check[] {
  if (subject.hasStarted()) return [{ name: "started" }];
  const { controllers } = subject.health();
  const starts = Object.entries(controllers).map(([name, { isStarted }]) => checkOfStart(subject, name, isStarted));
  return [{ name: "started", problem: "waiting for caches to sync" }, ...starts];
}

function checkOfStart(subject: ProbeSubject, controller: string, isStarted: boolean): Check {
  const name = `controller/${controller}`;
  if (isStarted) return { name };
  const found = subject.controllers().find(({ definition }) => definition.name === controller);
  return { name, problem: found?.failures.join("; ") || "not started yet" };
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
