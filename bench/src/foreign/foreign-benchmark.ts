// The cost of an operator in a cluster with many unrelated objects of the watched kinds, without user-defined selectors.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "#runtime/base/logger.js";
import { inParallel } from "../load-client.js";
import type { BenchmarkResult } from "../measurement.js";
import type { CountedCluster } from "../operators/counted-cluster.js";
import type { OperatorCommand } from "../operators/operator-process.js";
import { findUnselectedPeers } from "../peers/implementations.js";
import { buildOurOperator } from "../peers/our-operator.js";
import { measurePhases } from "../peers/operator-phases.js";
import { measurementsOf } from "../peers/peers-benchmark.js";
import { measureInTurns } from "../peers/turns.js";
import { tellProgress } from "../progress.js";

const CONFIG_MAPS = 20_000;
const SECRETS = 5_000;
const NAMESPACE = "foreign";
const CONCURRENCY = 40;
// A typical size of an object, in bytes.
const CONTENT = "x".repeat(2_000);

/** Measures the workload of the peers with unrelated objects in the cluster. */
export async function measureForeign(options: { count: number; peerFolder: string }): Promise<BenchmarkResult> {
  const { count, peerFolder } = options;
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const notes = [
    `${count} custom resources with four dependents each, beside ${CONFIG_MAPS} ConfigMaps and ${SECRETS} Secrets of others, of 2 kB each; no watch has a selector that the user wrote`,
    "restart: until the operator watches its primaries again, and all that follows; the CPU is that of the new process",
  ];
  try {
    const peers = findUnselectedPeers(peerFolder);
    const operator = buildOurOperator(folder, "unselected");
    await operator.catch(() => {});
    const contestantOf = (name: string, build: () => Promise<OperatorCommand>, prepare = createForeign) => ({
      name,
      async measure() {
        const command = await build();
        const logFile = join(folder, "operators.log");
        return measurePhases(command, { count, logFile, phases: ["start", "restart"], prepare });
      },
    });
    const contestants = [
      contestantOf("ours", () => operator),
      contestantOf(
        "ours in an empty cluster",
        () => operator,
        async () => {},
      ),
      ...peers.map((peer) => contestantOf(peer.name, () => peer.build())),
    ];
    const runs = await measureInTurns(contestants, {
      turns: 1,
      onTurn: (text) => tellProgress(`foreign: ${text}`),
      onFailure: (text, error) => notes.push(`${text} was not measured: ${messageOf(error)}`),
    });
    return {
      benchmark: "foreign",
      peers: ["ours in an empty cluster", ...peers.map(({ name }) => name)],
      notes,
      measurements: measurementsOf(runs),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function createForeign(cluster: CountedCluster): Promise<void> {
  await cluster.create("namespaces", "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  const create = (plural: string, count: number, content: object) =>
    inParallel(count, CONCURRENCY, (index) =>
      cluster.create(plural, `/api/v1/namespaces/${NAMESPACE}/${plural}`, {
        metadata: { name: `foreign-${index}` },
        ...content,
      }),
    );
  await create("configmaps", CONFIG_MAPS, { data: { content: CONTENT } });
  await create("secrets", SECRETS, { stringData: { content: CONTENT } });
}
