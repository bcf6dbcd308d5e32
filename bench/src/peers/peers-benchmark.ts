// The same workload on an operator of ours and on those of other frameworks, whose sources lie outside of this repository.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "#runtime/base/logger.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import { describeCounts, totalOf } from "../operators/request-counts.js";
import type { MeasuredPlane } from "../operators/counted-cluster.js";
import { startEmbeddedPlane } from "../operators/embedded-plane.js";
import { tellProgress } from "../progress.js";
import { findPeers } from "./implementations.js";
import { measurePhases, type PhaseCost } from "./operator-phases.js";
import { buildOurOperator } from "./our-operator.js";
import { measureInTurns, memoryAtEnd, ofAllPhases, ofPhase, peakMemory, rowOf, type Run } from "./turns.js";

/** What the comparison needs to know. */
export interface PeersOptions {
  count: number;
  /** The folder with the sources of the peers, one folder each. */
  peerFolder: string;
  /** How often each operator is measured, in turns with the others; figures are medians. */
  turns: number;
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
  const tell = (text: string) => tellProgress(`${benchmark}: ${text}`);
  try {
    // Building leaves a machine busy, so it comes before anything is measured; what fails is told when its turn comes.
    tell("building ours");
    const operator = buildOurOperator(folder);
    await operator.catch(() => {});
    for (const peer of peers) {
      tell(`building ${peer.name}`);
      await peer.build().catch(() => {});
    }
    const implementations = [{ name: "ours", note: undefined, build: () => operator }, ...peers];
    const contestants = implementations.map(({ name, build }) => ({
      name,
      async measure() {
        const logFile = join(folder, "operators.log");
        const run = await measurePhases(await build(), { count, logFile, ...(startPlane && { startPlane }) });
        tell(`${name} and the API server took ${togetherIn(run)} s of CPU`);
        return run;
      },
    }));
    const runs = await measureInTurns(contestants, {
      turns,
      onTurn: tell,
      onFailure: (text, error) => notes.push(`${text} was not measured: ${messageOf(error)}`),
    });
    for (const [index, { name, note }] of implementations.entries()) {
      const [first, ...others] = runs[index]!;
      if (first === undefined) continue;
      notes.push(`${name}: ${describeRequests(first)}`);
      const together = [first, ...others].map(togetherIn).join(", ");
      if (others.length > 0) notes.push(`${name}, CPU with the API server in s: ${together}`);
      if (note !== undefined) notes.push(note);
    }
    return { benchmark, peers: peers.map(({ name }) => name), notes, measurements: measurementsOf(runs) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function describeRequests(run: Run): string {
  return run.map(({ phase, requests }) => `${phase} ${describeCounts(requests)}`).join("; ");
}

function cpuWithServer({ cpuSeconds, serverCpuSeconds }: PhaseCost): number {
  return cpuSeconds + serverCpuSeconds;
}

function togetherIn(run: Run): string {
  return ofAllPhases(cpuWithServer)(run).toFixed(1);
}

type Figure = readonly [name: string, unit: string, read: (cost: PhaseCost) => number];

const WALL: Figure = ["wall", "s", ({ wallSeconds }) => wallSeconds];
const FIGURES: readonly Figure[] = [
  ["CPU", "s", ({ cpuSeconds }) => cpuSeconds],
  ["server CPU", "s", ({ serverCpuSeconds }) => serverCpuSeconds],
  ["CPU together", "s", cpuWithServer],
  ["requests", "calls", ({ requests }) => totalOf(requests)],
];

/** Turns the runs of each operator, ours first, into rows: the figures of each phase, CPU of all of them, and memory once. */
export function measurementsOf(runs: readonly (readonly Run[])[]): Measurement[] {
  const phases = new Set(runs.flat(2).map(({ phase }) => phase));
  const row = (name: string, unit: string, read: (run: Run) => number | undefined) => rowOf(runs, { name, unit, read });
  const ofPhases = [...phases].flatMap((phase) => {
    // Somebody else's patches and the time of idling are the driver's.
    const figures = phase === "touch" || phase === "idle" ? FIGURES : [WALL, ...FIGURES];
    return figures.map(([name, unit, read]) => row(`${phase}: ${name}`, unit, ofPhase(phase, read)));
  });
  return [
    ...ofPhases,
    row(
      "all phases: CPU",
      "s",
      ofAllPhases(({ cpuSeconds }) => cpuSeconds),
    ),
    row("all phases: CPU together", "s", ofAllPhases(cpuWithServer)),
    // The peers come with a driver that has no such phase.
    row("all but touch: CPU together", "s", ofAllPhases(cpuWithServer, "touch")),
    row("memory at the end", "MB", memoryAtEnd),
    row("peak memory", "MB", peakMemory),
  ];
}
