// Measures an operator in the phases of the workload. Each operator runs on a new control plane, and all of them in the same phases:
//
// - start: the pages exist, and the operator is started; ends when each page is observed and all dependents exist
// - update: the HTML of all pages changes; ends when each page is observed and its ConfigMap contains the new HTML
// - drift: all ConfigMaps are deleted; ends when they are recreated with the expected content
// - touch: another client labels all ConfigMaps, which does not change the desired state; ends when there are no more requests
// - restart: SIGTERM, and the operator is started again; ends when it watches the pages
// - idle: nothing changes for 20 s
//
// The cost of a phase includes what the operator does after its end until there has been no request for three seconds (five after a restart), because
// some operators reconcile again because of their own writes.
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "#apiserver/wait-for.js";
import { inParallel } from "../load-client.js";
import { type CountedCluster, type MeasuredPlane, startCountedCluster } from "../operators/counted-cluster.js";
import { type OperatorCommand, type OperatorProcess, startOperator } from "../operators/operator-process.js";
import { differencesFrom, expectedChildren } from "./contract.js";
import { followObjects } from "../operators/followed-objects.js";
import { readUsage } from "../operators/process-usage.js";
import { type RequestCounts, subtract } from "../operators/request-counts.js";
import {
  type BenchObject,
  childPaths,
  htmlOf,
  NAMESPACE,
  PAGES_PATH,
  pageName,
  webPage,
  webPageDefinition,
} from "./web-page.js";

/** The phases, in order. */
export type PhaseName = "start" | "update" | "drift" | "touch" | "restart" | "idle";

/** The cost of a phase. */
export interface PhaseCost {
  phase: PhaseName;
  /** The time until the end of the phase, excluding later requests. */
  wallSeconds: number;
  /** CPU time of the operator. */
  cpuSeconds: number;
  /** CPU time of the control plane. */
  serverCpuSeconds: number;
  /** The requests of the operator; a watch is counted when it ends. */
  requests: RequestCounts;
  residentMb: number;
  peakMb: number;
}

/** The options of a measurement. */
export interface PhasesOptions {
  count: number;
  logFile: string;
  /** The phases to measure; they build on each other, so only phases before `restart` or at the end can be omitted. Default: all */
  phases?: readonly PhaseName[];
  /** Creates additional objects before the operator starts. */
  prepare?: (cluster: CountedCluster) => Promise<void>;
  /** Starts the control plane. Default: etcd and kube-apiserver */
  startPlane?: () => Promise<MeasuredPlane>;
}

const CONCURRENCY = 40;
const PHASE_LIMIT = { timeoutMs: 180_000, intervalMs: 100 };
const QUIET_MS = 3_000;
const QUIET_AFTER_RESTART_MS = 5_000;
const IDLE_MS = 20_000;
const ALL_PHASES: readonly PhaseName[] = ["start", "update", "drift", "touch", "restart", "idle"];

/** Measures an operator in all phases. */
export async function measurePhases(command: OperatorCommand, options: PhasesOptions): Promise<PhaseCost[]> {
  await using cluster = await startCountedCluster(["webpages", ...Object.keys(childPaths)], options.startPlane);
  await createPages(cluster, options.count);
  await options.prepare?.(cluster);
  const [pages, maps] = await Promise.all([
    followObjects<BenchObject>(cluster, PAGES_PATH),
    followObjects<BenchObject>(cluster, childPaths["configmaps"]!),
  ]);
  const run: Run = { command, cluster, pages, maps, ...options, operator: undefined };
  const costs: PhaseCost[] = [];
  try {
    for (const name of options.phases ?? ALL_PHASES) costs.push(await runPhase[name](run));
  } finally {
    await run.operator?.stop();
  }
  return costs;
}

interface Run extends PhasesOptions {
  command: OperatorCommand;
  cluster: CountedCluster;
  /** The watched state of the pages and of all ConfigMaps. */
  pages: ReadonlyMap<string, BenchObject>;
  maps: ReadonlyMap<string, BenchObject>;
  operator: OperatorProcess | undefined;
}

interface Phase {
  name: PhaseName;
  act: () => Promise<void>;
  isDone: () => Promise<boolean>;
  /** Whether the operator is a new process, whose CPU time starts at zero. */
  isFresh?: boolean;
  quietMs?: number;
}

async function startPhase(run: Run): Promise<PhaseCost> {
  const cost = await measure(run, {
    name: "start",
    isFresh: true,
    act: async () => startAgain(run),
    isDone: async () => isObserved(run) && (await hasAllChildren(run)),
  });
  await checkContract(run);
  return cost;
}

function updatePhase(run: Run): Promise<PhaseCost> {
  return measure(run, {
    name: "update",
    act: () =>
      inParallel(run.count, CONCURRENCY, (index) =>
        run.cluster.send({
          verb: "PATCH",
          resource: "webpages",
          method: "PATCH",
          path: `${PAGES_PATH}/${pageName(index)}`,
          contentType: "application/merge-patch+json",
          body: JSON.stringify({ spec: { html: htmlOf("two", pageName(index)) } }),
        }),
      ),
    isDone: async () => isObserved(run) && hasConfigMaps(run, "two"),
  });
}

function driftPhase(run: Run): Promise<PhaseCost> {
  const deleted = new Set([...run.maps.values()].map(({ metadata }) => metadata.uid));
  return measure(run, {
    name: "drift",
    act: () =>
      inParallel(run.count, CONCURRENCY, (index) =>
        run.cluster.send({
          verb: "DELETE",
          resource: "configmaps",
          method: "DELETE",
          path: `${childPaths["configmaps"]}/${pageName(index)}`,
        }),
      ),
    isDone: async () => hasConfigMaps(run, "two", deleted),
  });
}

function touchPhase(run: Run): Promise<PhaseCost> {
  const touch = (index: number) =>
    run.cluster.send({
      verb: "PATCH",
      resource: "configmaps",
      method: "PATCH",
      path: `${childPaths["configmaps"]}/${pageName(index)}`,
      contentType: "application/merge-patch+json",
      body: JSON.stringify({ metadata: { labels: { "bench.example.com/touched": "yes" } } }),
    });
  return measure(run, {
    name: "touch",
    act: () => inParallel(run.count, CONCURRENCY, touch),
    isDone: async () => true,
  });
}

async function restartPhase(run: Run): Promise<PhaseCost> {
  // The simulated garbage collector also watches pages.
  const openWatches = () => run.cluster.openWatches("webpages");
  const before = await openWatches();
  return measure(run, {
    name: "restart",
    isFresh: true,
    quietMs: QUIET_AFTER_RESTART_MS,
    act: async () => {
      await run.operator?.stop();
      await waitFor("the watches are closed", async () => (await openWatches()) < before, PHASE_LIMIT);
      startAgain(run);
    },
    isDone: async () => (await openWatches()) >= before,
  });
}

function idlePhase(run: Run): Promise<PhaseCost> {
  return measure(run, { name: "idle", quietMs: 0, act: () => sleep(IDLE_MS), isDone: async () => true });
}

const runPhase: { readonly [Name in PhaseName]: (run: Run) => Promise<PhaseCost> } = {
  start: startPhase,
  update: updatePhase,
  drift: driftPhase,
  touch: touchPhase,
  restart: restartPhase,
  idle: idlePhase,
};

async function measure(
  run: Run,
  { name, act, isDone, isFresh = false, quietMs = QUIET_MS }: Phase,
): Promise<PhaseCost> {
  const { cluster } = run;
  const before = {
    counts: await cluster.readCounts(),
    cpu: isFresh ? 0 : usageOf(run).cpuSeconds,
    server: cluster.serverCpuSeconds(),
    at: performance.now(),
  };
  await act();
  await waitFor(
    `the end of phase ${name}`,
    () => {
      run.operator?.checkAlive();
      return isDone();
    },
    PHASE_LIMIT,
  );
  const wallSeconds = (performance.now() - before.at) / 1000;
  if (quietMs > 0) await cluster.quiet(quietMs);
  const usage = usageOf(run);
  return {
    phase: name,
    wallSeconds,
    cpuSeconds: usage.cpuSeconds - before.cpu,
    serverCpuSeconds: cluster.serverCpuSeconds() - before.server,
    requests: subtract(await cluster.readCounts(), before.counts),
    residentMb: usage.residentMb,
    peakMb: usage.peakMb,
  };
}

function startAgain(run: Run): void {
  run.operator = startOperator(run.command, { kubeconfig: run.cluster.kubeconfig, logFile: run.logFile });
}

function usageOf({ operator }: Run) {
  if (operator === undefined) throw new Error("the operator is not running");
  return readUsage(operator.pid);
}

async function createPages(cluster: CountedCluster, count: number): Promise<void> {
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await cluster.create("customresourcedefinitions", definitions, webPageDefinition);
  await cluster.create("namespaces", "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  await waitFor("WebPages are served", () =>
    cluster.list("webpages", PAGES_PATH).then(
      () => true,
      () => false,
    ),
  );
  await inParallel(count, CONCURRENCY, (index) => cluster.create("webpages", PAGES_PATH, webPage(index)));
}

function isObserved({ pages, count }: Run): boolean {
  if (pages.size !== count) return false;
  return [...pages.values()].every(({ metadata, status }) => status?.observedGeneration === metadata.generation);
}

async function hasAllChildren(run: Run): Promise<boolean> {
  for (const resource of Object.keys(childPaths)) {
    if ((await childrenOf(run, resource)).length !== run.count) return false;
  }
  return true;
}

/** Throws if the dependents of the last page do not satisfy the contract. */
async function checkContract(run: Run): Promise<void> {
  const last = run.count - 1;
  for (const [resource, expected] of Object.entries(expectedChildren(last, "one", run.command.name))) {
    const live = (await childrenOf(run, resource)).find(({ metadata }) => metadata.name === pageName(last));
    const [difference] = differencesFrom(expected, live);
    if (difference !== undefined)
      throw new Error(`${run.command.name} breaks the contract in ${resource} ${pageName(last)}: ${difference}`);
  }
}

function hasConfigMaps({ maps, count }: Run, version: string, deleted = new Set<string>()): boolean {
  return Array.from({ length: count }, (_, index) => pageName(index)).every((name) => {
    const map = maps.get(name);
    return map?.data?.["index.html"] === htmlOf(version, name) && !deleted.has(map.metadata.uid);
  });
}

function childrenOf({ cluster, command }: Run, resource: string): Promise<BenchObject[]> {
  return cluster.list(resource, `${childPaths[resource]}?labelSelector=${encodeURIComponent(`bench=${command.name}`)}`);
}
