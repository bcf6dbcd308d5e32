// The same workload on an operator of ours and on those of other frameworks, whose sources lie outside of this repository.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "#runtime/base/logger.js";
import { medianOf, type BenchmarkResult, type Measurement } from "../measurement.js";
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
  /** How often each operator is measured, in turns with the others; figures are medians. */
  turns: number;
}

/** What is measured of one implementation. */
interface Contestant {
  readonly name: string;
  readonly note?: string;
  build(): Promise<OperatorCommand>;
}

/** Measures all operators in turns, each on a fresh control plane; what is absent is left out and said so. */
export function measurePeers(options: PeersOptions): Promise<BenchmarkResult> {
  return measureAll("peers", options);
}

/** Does the same on the embedded server with its simulated controllers. */
export function measurePeersOnEmbedded(options: PeersOptions): Promise<BenchmarkResult> {
  return measureAll("peers-embedded", options, startEmbeddedPlane);
}

async function measureAll(
  benchmark: string,
  { count, peerFolder, turns }: PeersOptions,
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
  if (turns > 1) notes.push(`medians of ${turns} runs of each, in turns`);
  const runsOf = new Map<string, PhaseCost[][]>();
  const measureOne = async (contestant: Contestant, turn: number): Promise<void> => {
    const { name } = contestant;
    const runs = runsOf.get(name) ?? [];
    runsOf.set(name, runs);
    // What failed once is not tried again.
    if (runs.length < turn - 1) return;
    try {
      tellProgress(`${benchmark}: ${name}, turn ${turn} of ${turns}`);
      const logFile = join(folder, "operators.log");
      runs.push(await measurePhases(await contestant.build(), { count, logFile, ...(startPlane && { startPlane }) }));
      const together = sumOf(runs.at(-1)!, cpuWithServer).toFixed(1);
      tellProgress(`${benchmark}: ${name} and the API server took ${together} s of CPU`);
    } catch (error) {
      notes.push(`${name} was not measured in turn ${turn}: ${messageOf(error)}`);
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
    const contestants: Contestant[] = [{ name: "ours", build: () => operator }, ...peers];
    for (let turn = 1; turn <= turns; turn++) {
      // A machine that gets slower, or faster, does so for all alike.
      const order = turn % 2 === 1 ? contestants : contestants.toReversed();
      for (const contestant of order) await measureOne(contestant, turn);
    }
    const costs = contestants.map(({ name, note }) => {
      const runs = runsOf.get(name)!;
      if (runs.length > 0) notes.push(`${name}: ${describeRequests(runs[0]!)}`);
      if (runs.length > 1) notes.push(`${name}, CPU with the API server in s: ${describeTurns(runs)}`);
      if (runs.length > 0 && note !== undefined) notes.push(note);
      return mediansOf(runs);
    });
    const [ours = [], ...theirs] = costs;
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

/** Renders what all phases took together in each turn: `21.0, 20.4`. */
function describeTurns(runs: readonly (readonly PhaseCost[])[]): string {
  return runs.map((run) => sumOf(run, cpuWithServer).toFixed(1)).join(", ");
}

function cpuWithServer({ cpuSeconds, serverCpuSeconds }: PhaseCost): number {
  return cpuSeconds + serverCpuSeconds;
}

function sumOf(costs: readonly PhaseCost[], read: (cost: PhaseCost) => number): number {
  return costs.reduce((sum, cost) => sum + read(cost), 0);
}

/** Returns the median of every figure of several runs; the requests are those of the first. */
export function mediansOf(runs: readonly (readonly PhaseCost[])[]): PhaseCost[] {
  const [first = []] = runs;
  return first.map(({ phase, requests }, index) => {
    const median = (read: (cost: PhaseCost) => number) => medianOf(runs, (run) => read(run[index]!));
    return {
      phase,
      requests,
      wallSeconds: median(({ wallSeconds }) => wallSeconds),
      cpuSeconds: median(({ cpuSeconds }) => cpuSeconds),
      serverCpuSeconds: median(({ serverCpuSeconds }) => serverCpuSeconds),
      residentMb: median(({ residentMb }) => residentMb),
      peakMb: median(({ peakMb }) => peakMb),
    };
  });
}

/** Turns what the phases cost into rows: five figures of each phase, CPU of all of them, and memory once. */
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
      row(`${phase}: CPU together`, "s", of(cpuWithServer)),
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
  const all = (read: (cost: PhaseCost) => number) => (costs: readonly PhaseCost[]) =>
    costs.length === 0 ? undefined : sumOf(costs, read);
  return [
    ...rows,
    row(
      "all phases: CPU",
      "s",
      all(({ cpuSeconds }) => cpuSeconds),
    ),
    row("all phases: CPU together", "s", all(cpuWithServer)),
    row("memory at the end", "MB", (costs) => costs.at(-1)?.residentMb),
    row("peak memory", "MB", peakOf),
  ];
}

function costOf(costs: readonly PhaseCost[], phase: PhaseName): PhaseCost | undefined {
  return costs.find((cost) => cost.phase === phase);
}
