// The same workload on our operator and on those of other frameworks, whose sources are outside of this repository.
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

/** The options of the comparison. */
export interface PeersOptions {
  count: number;
  /** The folder with the sources of the peers, one folder each. */
  peerFolder: string;
  /** The number of measurements of each operator, in turns with the others. Figures are medians. */
  turns: number;
}

/** Measures all operators in turns, each on a new control plane. Missing peers are listed in the notes. */
export function measurePeers(options: PeersOptions): Promise<BenchmarkResult> {
  return measureAll("peers", options);
}

/** Like `measurePeers`, on the embedded server with its simulated controllers. */
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
    // Builds cause load on the machine, so they run before the measurements. A failure is reported in the turn of the operator.
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

/** Converts the runs of each operator, ours first, to rows: the figures of each phase, the total CPU time, and the memory once. */
export function measurementsOf(runs: readonly (readonly Run[])[]): Measurement[] {
  const phases = new Set(runs.flat(2).map(({ phase }) => phase));
  const row = (name: string, unit: string, read: (run: Run) => number | undefined) => rowOf(runs, { name, unit, read });
  const ofPhases = [...phases].flatMap((phase) => {
    // The driver determines the duration of these phases.
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
    // The driver of the peers lacks this phase.
    row("all but touch: CPU together", "s", ofAllPhases(cpuWithServer, "touch")),
    row("memory at the end", "MB", memoryAtEnd),
    row("peak memory", "MB", peakMemory),
  ];
}
