// Measures an operator in three rounds on a graph: one primary, twenty more, and those twenty again with nothing to do.
import { readFile } from "node:fs/promises";
import { messageOf } from "#runtime/base/logger.js";
import { waitFor } from "#apiserver/wait-for.js";
import { inParallel } from "../load-client.js";
import { type CountedCluster, startCountedCluster } from "../operators/counted-cluster.js";
import { followObjects } from "../operators/followed-objects.js";
import { type OperatorCommand, type OperatorProcess, startOperator } from "../operators/operator-process.js";
import { readUsage } from "../operators/process-usage.js";
import { type RequestCounts, subtract } from "../operators/request-counts.js";
import { graphDefinition, GRAPHS_PATH, MAPS_PATH, NAMESPACE } from "./graph.js";

/** The cost of a round, including the requests until the operator is idle. */
export interface RoundCost {
  /** The time until all dependents existed and each primary was reconciled. */
  readonly wallMs: number;
  readonly cpuSeconds: number;
  readonly serverCpuSeconds: number;
  readonly requests: RequestCounts;
  /** The number of calls of the reconciler. */
  readonly reconciles: number;
  readonly peakMb: number;
}

/** The rounds, in order. */
export interface GraphCosts {
  readonly first: RoundCost;
  readonly many: RoundCost;
  readonly again: RoundCost;
}

/** The number of primaries in the second and third rounds. */
export const MANY = 20;

const CONCURRENCY = 20;
const QUIET_MS = 3_000;
const LIMIT = { timeoutMs: 180_000, intervalMs: 10 };

interface Run {
  readonly cluster: CountedCluster;
  readonly operator: OperatorProcess;
  readonly logFile: string;
  /** Returns the number of existing dependents. */
  seen(): number;
}

/** Measures an operator that manages `nodes` dependents for each primary. */
export async function measureGraph(
  command: OperatorCommand,
  { nodes, logFile }: { nodes: number; logFile: string },
): Promise<GraphCosts> {
  await using cluster = await startCountedCluster(["graphs", "configmaps"]);
  await prepare(cluster);
  const dependents = await followObjects(cluster, MAPS_PATH, `bench=${command.name}`);
  const operator = startOperator(command, { kubeconfig: cluster.kubeconfig, logFile });
  try {
    const run: Run = { cluster, operator, logFile, seen: () => dependents.size };
    await waitFor("Graphs are watched", () => isWatched(run), LIMIT);
    await cluster.quiet(QUIET_MS);
    const create = (index: number) =>
      cluster.create("graphs", GRAPHS_PATH, {
        apiVersion: "bench.example.com/v1",
        kind: "Graph",
        metadata: { name: nameOf(index), namespace: NAMESPACE },
        spec: { round: 1 },
      });
    return {
      first: await measureRound(run, { primaries: 1, dependents: nodes, act: () => create(0) }),
      many: await measureRound(run, {
        primaries: MANY,
        dependents: nodes * (MANY + 1),
        act: () => inParallel(MANY, CONCURRENCY, (index) => create(index + 1)),
      }),
      again: await measureRound(run, {
        primaries: MANY,
        dependents: nodes * (MANY + 1),
        act: () => inParallel(MANY, CONCURRENCY, (index) => touch(cluster, nameOf(index + 1))),
      }),
    };
  } catch (error) {
    const log = (await readFile(logFile, "utf8")).replace(/^reconciled .*\n/gm, "");
    throw new Error(`${messageOf(error)}, seen ${dependents.size}; its log ends with\n${log.slice(-1_000)}`, {
      cause: error,
    });
  } finally {
    await operator.stop();
  }
}

interface Round {
  readonly primaries: number;
  /** The number of dependents after the round, including those of previous rounds. */
  readonly dependents: number;
  act(): Promise<unknown>;
}

async function measureRound(run: Run, { primaries, dependents, act }: Round): Promise<RoundCost> {
  const { cluster, operator } = run;
  const before = {
    requests: await cluster.readCounts(),
    cpuSeconds: readUsage(operator.pid).cpuSeconds,
    serverCpuSeconds: cluster.serverCpuSeconds(),
    reconciles: await countReconciles(run),
    at: performance.now(),
  };
  await act();
  await waitFor(
    `${dependents} dependents, and ${primaries} reconciles more`,
    async () => {
      operator.checkAlive();
      return run.seen() === dependents && (await countReconciles(run)) >= before.reconciles + primaries;
    },
    LIMIT,
  );
  const wallMs = performance.now() - before.at;
  await cluster.quiet(QUIET_MS);
  const { cpuSeconds, peakMb } = readUsage(operator.pid);
  return {
    wallMs,
    cpuSeconds: cpuSeconds - before.cpuSeconds,
    serverCpuSeconds: cluster.serverCpuSeconds() - before.serverCpuSeconds,
    requests: subtract(await cluster.readCounts(), before.requests),
    reconciles: (await countReconciles(run)) - before.reconciles,
    peakMb,
  };
}

async function prepare(cluster: CountedCluster): Promise<void> {
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await cluster.create("customresourcedefinitions", definitions, graphDefinition);
  await cluster.create("namespaces", "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  await waitFor("Graphs are served", () =>
    cluster.list("graphs", GRAPHS_PATH).then(
      () => true,
      () => false,
    ),
  );
}

async function isWatched({ cluster, operator }: Run): Promise<boolean> {
  operator.checkAlive();
  return (await cluster.openWatches("graphs")) > 0;
}

// Creates a new generation without changing the desired state; both operators reconcile it.
function touch(cluster: CountedCluster, name: string): Promise<unknown> {
  return cluster.send({
    verb: "PATCH",
    resource: "graphs",
    method: "PATCH",
    path: `${GRAPHS_PATH}/${name}`,
    contentType: "application/merge-patch+json",
    body: JSON.stringify({ spec: { round: 2 } }),
  });
}

async function countReconciles({ logFile }: Run): Promise<number> {
  return (await readFile(logFile, "utf8")).match(/^reconciled /gm)?.length ?? 0;
}

function nameOf(index: number): string {
  return `graph-${String(index).padStart(3, "0")}`;
}
