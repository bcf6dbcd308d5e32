// The same workload on an operator of ours and on those of other frameworks, whose sources lie outside of this repository.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "#runtime/base/logger.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import type { OperatorCommand } from "../operators/operator-process.js";
import { describeCounts, totalOf } from "../operators/request-counts.js";
import type { MeasuredPlane } from "../operators/counted-cluster.js";
import { startEmbeddedPlane } from "../operators/embedded-plane.js";
import { tellProgress } from "../progress.js";
import { findPeers } from "./implementations.js";
import { measurePhases, type PhaseCost, type PhaseName } from "./operator-phases.js";
import { buildOurOperator } from "./our-operator.js";

/** What the comparison needs to know. */
export interface PeersOptions {
  count: number;
  /** The folder with the sources of the peers, one folder each. */
  peerFolder: string;
}

/** What is measured of one implementation. */
interface Contestant {
  readonly name: string;
  readonly note?: string;
  build(): Promise<OperatorCommand>;
}

/** Measures all operators, one after the other, each on a fresh control plane; what is absent is left out and said so. */
export function measurePeers(options: PeersOptions): Promise<BenchmarkResult> {
  return measureAll("peers", options);
}

/** Does the same on the embedded server with its simulated controllers. */
export function measurePeersOnEmbedded(options: PeersOptions): Promise<BenchmarkResult> {
  return measureAll("peers-embedded", options, startEmbeddedPlane);
}

async function measureAll(
  benchmark: string,
  { count, peerFolder }: PeersOptions,
  startPlane?: () => Promise<MeasuredPlane>,
): Promise<BenchmarkResult> {
  if (process.platform !== "linux") throw new Error("this benchmark reads /proc and runs on Linux only");
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const peers = findPeers(peerFolder);
  const notes = [
    `${count} custom resources with four dependents each; CPU and requests include what follows until all is quiet`,
  ];
  if (startPlane !== undefined)
    notes.push("the requests of the simulated controllers, which are PUT, are counted as well");
  if (peers.length === 0) notes.push(`no peer was measured: ${peerFolder} has none (--peer-dir)`);
  const measureOne = async (contestant: Contestant): Promise<PhaseCost[]> => {
    try {
      tellProgress(`peers: ${contestant.name}`);
      const logFile = join(folder, "operators.log");
      const costs = await measurePhases(await contestant.build(), {
        count,
        logFile,
        ...(startPlane && { startPlane }),
      });
      notes.push(`${contestant.name}: ${describeRequests(costs)}`);
      if (contestant.note !== undefined) notes.push(contestant.note);
      return costs;
    } catch (error) {
      notes.push(`${contestant.name} was not measured: ${messageOf(error)}`);
      return [];
    }
  };
  try {
    // Building leaves a machine busy, so it comes before anything is measured; what fails is told when its turn comes.
    tellProgress("peers: building ours");
    const operator = buildOurOperator(folder);
    await operator.catch(() => {});
    for (const peer of peers) {
      tellProgress(`peers: building ${peer.name}`);
      await peer.build().catch(() => {});
    }
    const ours = await measureOne({ name: "ours", build: () => operator });
    const theirs: PhaseCost[][] = [];
    for (const peer of peers) theirs.push(await measureOne(peer));
    return {
      benchmark,
      peers: peers.map(({ name }) => name),
      notes,
      measurements: measurementsOf(ours, theirs),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function describeRequests(costs: readonly PhaseCost[]): string {
  return costs.map(({ phase, requests }) => `${phase} ${describeCounts(requests)}`).join("; ");
}

/** Turns what the phases cost into rows: four figures of each phase, and memory once. */
export function measurementsOf(ours: readonly PhaseCost[], peers: readonly (readonly PhaseCost[])[]): Measurement[] {
  const phases = new Set([ours, ...peers].flatMap((costs) => costs.map(({ phase }) => phase)));
  const row = (name: string, unit: string, read: (costs: readonly PhaseCost[]) => number | undefined): Measurement => {
    const own = read(ours);
    return { name, unit, better: "lower", ...(own === undefined ? {} : { ours: own }), peers: peers.map(read) };
  };
  const rows = [...phases].flatMap((phase) => {
    const of = (read: (cost: PhaseCost) => number) => (costs: readonly PhaseCost[]) => {
      const cost = costOf(costs, phase);
      return cost === undefined ? undefined : read(cost);
    };
    const figures = [
      row(
        `${phase}: CPU`,
        "s",
        of(({ cpuSeconds }) => cpuSeconds),
      ),
      row(
        `${phase}: server CPU`,
        "s",
        of(({ serverCpuSeconds }) => serverCpuSeconds),
      ),
      row(
        `${phase}: requests`,
        "calls",
        of(({ requests }) => totalOf(requests)),
      ),
    ];
    // Somebody else's patches and the time of idling are the driver's.
    const hasWall = phase !== "touch" && phase !== "idle";
    return hasWall
      ? [
          row(
            `${phase}: wall`,
            "s",
            of(({ wallSeconds }) => wallSeconds),
          ),
          ...figures,
        ]
      : figures;
  });
  const peakOf = (costs: readonly PhaseCost[]) =>
    costs.length === 0 ? undefined : Math.max(...costs.map(({ peakMb }) => peakMb));
  return [
    ...rows,
    row("memory at the end", "MB", (costs) => costs.at(-1)?.residentMb),
    row("peak memory", "MB", peakOf),
  ];
}

function costOf(costs: readonly PhaseCost[], phase: PhaseName): PhaseCost | undefined {
  return costs.find((cost) => cost.phase === phase);
}
