// Drives one operator through the phases of the workload and takes down what each of them cost: start, update, drift, restart,
// idle. Every operator gets a fresh control plane.
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "#test/support/eventually.js";
import { inParallel } from "../load-client.js";
import { type CountedCluster, type RequestCounts, startCountedCluster } from "./counted-cluster.js";
import { type OperatorCommand, type OperatorProcess, startOperator } from "./operator-process.js";
import { readUsage } from "./process-usage.js";
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

/** What a phase cost; `settle` is the time after it until there was no request for three seconds. */
export interface PhaseCost {
  phase: "start" | "update" | "drift" | "restart" | "idle";
  wallSeconds: number;
  /** Of the operator, with what follows until all is quiet. */
  cpuSeconds: number;
  /** Of kube-apiserver and etcd. */
  serverCpuSeconds: number;
  /** By the operator; a watch counts when it ends. */
  requests: number;
  residentMb: number;
  peakMb: number;
}

/** How much work an operator gets, and where its output goes. */
export interface PhasesOptions {
  count: number;
  logFile: string;
}

const CONCURRENCY = 40;
const PHASE_LIMIT = { timeoutMs: 180_000, everyMs: 100 };
const QUIET_MS = 3_000;
const QUIET_AFTER_RESTART_MS = 5_000;
const IDLE_MS = 20_000;

/** Runs an operator through all phases. */
export async function measurePhases(command: OperatorCommand, options: PhasesOptions): Promise<PhaseCost[]> {
  await using cluster = await startCountedCluster();
  await createPages(cluster, options.count);
  const run: Run = { command, cluster, ...options, operator: undefined };
  const costs: PhaseCost[] = [];
  try {
    for (const phase of [startPhase, updatePhase, driftPhase, restartPhase, idlePhase]) costs.push(await phase(run));
  } finally {
    await run.operator?.stop();
  }
  return costs;
}

interface Run extends PhasesOptions {
  command: OperatorCommand;
  cluster: CountedCluster;
  operator: OperatorProcess | undefined;
}

interface Phase {
  name: PhaseCost["phase"];
  act: () => Promise<void>;
  isDone: () => Promise<boolean>;
  /** The operator is a new process, whose costs count from zero. */
  isFresh?: boolean;
  quietMs?: number;
}

function startPhase(run: Run): Promise<PhaseCost> {
  return measure(run, {
    name: "start",
    isFresh: true,
    act: async () => startAgain(run),
    isDone: async () => (await isObserved(run)) && (await hasAllChildren(run)),
  });
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
    isDone: async () => (await isObserved(run)) && (await hasConfigMaps(run, "two")),
  });
}

function driftPhase(run: Run): Promise<PhaseCost> {
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
    isDone: () => hasConfigMaps(run, "two"),
  });
}

function restartPhase(run: Run): Promise<PhaseCost> {
  return measure(run, {
    name: "restart",
    isFresh: true,
    quietMs: QUIET_AFTER_RESTART_MS,
    act: async () => {
      await run.operator?.stop();
      await eventually("the watches are closed", async () => !(await run.cluster.isWatched()), PHASE_LIMIT);
      startAgain(run);
    },
    isDone: () => run.cluster.isWatched(),
  });
}

function idlePhase(run: Run): Promise<PhaseCost> {
  return measure(run, { name: "idle", quietMs: 0, act: () => sleep(IDLE_MS), isDone: async () => true });
}

/** The cost of a phase includes what the operator does until it is quiet: some reconcile again on their own writes. */
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
  await eventually(
    `the end of phase ${name}`,
    () => {
      run.operator?.checkAlive();
      return isDone();
    },
    PHASE_LIMIT,
  );
  const wallSeconds = (performance.now() - before.at) / 1000;
  await isQuiet(cluster, quietMs);
  const usage = usageOf(run);
  return {
    phase: name,
    wallSeconds,
    cpuSeconds: usage.cpuSeconds - before.cpu,
    serverCpuSeconds: cluster.serverCpuSeconds() - before.server,
    requests: totalOf(await cluster.readCounts()) - totalOf(before.counts),
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

async function isQuiet(cluster: CountedCluster, quietMs: number): Promise<void> {
  let last = totalOf(await cluster.readCounts());
  let since = performance.now();
  while (performance.now() - since < quietMs) {
    await sleep(500);
    const now = totalOf(await cluster.readCounts());
    if (now !== last) since = performance.now();
    last = now;
  }
}

function totalOf(counts: RequestCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

async function createPages(cluster: CountedCluster, count: number): Promise<void> {
  const create = (resource: string, path: string, body: object) =>
    cluster.send({ verb: "POST", resource, method: "POST", path, body: JSON.stringify(body) });
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await create("customresourcedefinitions", definitions, webPageDefinition);
  await create("namespaces", "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  await eventually("WebPages are served", async () => {
    return cluster.list("webpages", PAGES_PATH).then(
      () => true,
      () => false,
    );
  });
  await inParallel(count, CONCURRENCY, (index) => create("webpages", PAGES_PATH, webPage(index)));
}

async function isObserved({ cluster }: Run): Promise<boolean> {
  const pages = await cluster.list("webpages", PAGES_PATH);
  return pages.every(({ metadata, status }) => status?.observedGeneration === metadata.generation);
}

async function hasAllChildren(run: Run): Promise<boolean> {
  for (const resource of Object.keys(childPaths)) {
    if ((await childrenOf(run, resource)).length !== run.count) return false;
  }
  return true;
}

async function hasConfigMaps(run: Run, version: string): Promise<boolean> {
  const maps = await childrenOf(run, "configmaps");
  return (
    maps.length === run.count &&
    maps.every(({ metadata, data }) => data?.["index.html"] === htmlOf(version, metadata.name))
  );
}

function childrenOf({ cluster, command }: Run, resource: string): Promise<BenchObject[]> {
  return cluster.list(resource, `${childPaths[resource]}?labelSelector=${encodeURIComponent(`bench=${command.name}`)}`);
}
