// The number of API calls of a reconcile that finds everything as desired. It should be zero for any number of dependents.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "#runtime/base/logger.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import type { OperatorCommand } from "../operators/operator-process.js";
import { readsOf, totalOf } from "../operators/request-counts.js";
import { findPeers } from "../peers/implementations.js";
import { measurePhases, type PhaseCost } from "../peers/operator-phases.js";
import { buildOurOperator } from "../peers/our-operator.js";
import { tellProgress } from "../progress.js";
import { measurePasses, type PassCost } from "./pass-run.js";
import { type PassSample, passSamples } from "./samples.js";

const PEERS = ["controller-runtime", "josdk"];
const PAGES = 20;

/** Measures reconciles of all samples, and of the peer workload. */
export async function measurePass({ peerFolder }: { peerFolder: string }): Promise<BenchmarkResult> {
  const measurements: Measurement[] = [];
  const notes = [
    "API calls of passes that find everything as desired, on a real API server: not the lists and watches that keep caches",
    "touched: somebody labels each dependent; restarted: the operator is started again; elapsed: the longest time between two reconciles has passed. The table has kube-apiserver's counts, the notes those of onRequest",
  ];
  for (const sample of passSamples) {
    try {
      tellProgress(`pass: ${sample.name}`);
      const passes = Object.entries(await measurePasses(sample)) as [string, PassCost][];
      measurements.push(...passes.map(([name, cost]) => rowOf(titleOf(sample, name), cost.byServer)));
      notes.push(`${sample.name}: ${passes.map(([name, cost]) => describe(name, cost)).join("; ")}`);
    } catch (error) {
      notes.push(`${sample.name} was not measured: ${messageOf(error)}`);
    }
  }
  const { rows, problems } = await measureWorkload(peerFolder);
  return { benchmark: "pass", peers: PEERS, notes: [...notes, ...problems], measurements: [...measurements, ...rows] };
}

function titleOf({ name, children }: PassSample, pass: string): string {
  return `${name}, ${children} ${children === 1 ? "dependent" : "dependents"}, ${pass}`;
}

function describe(pass: string, { byClient, reconciles }: PassCost): string {
  return `${pass} ${reconciles} reconciles, ${byClient} calls by the client`;
}

function rowOf(name: string, ours: number): Measurement {
  return { name, unit: "calls", better: "lower", ours };
}

/** Measures the WebPages of the peer workload: four dependents each, one of which is touched. */
async function measureWorkload(peerFolder: string): Promise<{ rows: Measurement[]; problems: string[] }> {
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const problems: string[] = [];
  const measure = async (name: string, build: () => Promise<OperatorCommand>): Promise<PhaseCost[]> => {
    try {
      tellProgress(`pass: the pages of ${name}`);
      const phases = ["start", "touch", "restart"] as const;
      return await measurePhases(await build(), { count: PAGES, logFile: join(folder, "operators.log"), phases });
    } catch (error) {
      problems.push(`the pages of ${name} were not measured: ${messageOf(error)}`);
      return [];
    }
  };
  try {
    const ours = await measure("ours", () => buildOurOperator(folder));
    const theirs: PhaseCost[][] = [];
    for (const name of PEERS) {
      const [peer] = findPeers(peerFolder, [name]);
      if (peer === undefined) problems.push(`${name} was not measured: ${peerFolder} does not have it (--peer-dir)`);
      theirs.push(peer === undefined ? [] : await measure(name, () => peer.build()));
    }
    const rows = (["touch", "restart"] as const).map((phase): Measurement => {
      const perPage = (costs: readonly PhaseCost[]) => {
        const cost = costs.find((each) => each.phase === phase);
        return cost && (totalOf(cost.requests) - readsOf(cost.requests)) / PAGES;
      };
      const own = perPage(ours);
      return {
        name: `page of the peers, 4 dependents, ${phase}ed, per page`,
        unit: "calls",
        better: "lower",
        ...(own === undefined ? {} : { ours: own }),
        peers: theirs.map(perPage),
      };
    });
    return { rows, problems };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
