// The same workload on an operator of ours and on one written with controller-runtime, whose source lies outside of this repository.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "#test/support/repository.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import { measurePhases, type PhaseCost } from "./operator-phases.js";
import type { OperatorCommand } from "./operator-process.js";

/** What the comparison needs to know. */
export interface OperatorsOptions {
  count: number;
  peerFolder: string;
}

const OURS = join(repositoryRoot, "bench/peers-workload/dist/main.js");

/** Measures both operators, one after the other, each on a fresh control plane; what is absent is left out and said so. */
export async function measureOperators({ count, peerFolder }: OperatorsOptions): Promise<BenchmarkResult> {
  if (process.platform !== "linux") throw new Error("this benchmark reads /proc and runs on Linux only");
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const logFile = join(folder, "operators.log");
  const notes = [`${count} custom resources with four dependents each; CPU includes what follows until all is quiet`];
  try {
    const ours = existsSync(OURS)
      ? await measurePhases({ name: "gen-operator", program: process.execPath, args: [OURS] }, { count, logFile })
      : undefined;
    if (ours === undefined) notes.push("ours was not measured: bench/peers-workload/dist/main.js does not exist");
    const command = existsSync(join(peerFolder, "go.mod")) ? await buildPeer(peerFolder, folder) : undefined;
    const peer = command === undefined ? undefined : await measurePhases(command, { count, logFile });
    if (peer === undefined) notes.push(`the peer was not measured: there is no go.mod in ${peerFolder} (--peer-dir)`);
    return { benchmark: "peers", peer: "controller-runtime", notes, measurements: measurementsOf(ours, peer) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Builds the operator of the peer from its Go source into a folder. */
export async function buildPeer(source: string, folder: string): Promise<OperatorCommand> {
  const program = join(folder, "operator");
  const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off" };
  await promisify(execFile)("go", ["build", "-mod=readonly", "-o", program, "."], { cwd: source, env });
  return { name: "controller-runtime", program, args: [] };
}

function measurementsOf(ours: PhaseCost[] | undefined, peer: PhaseCost[] | undefined): Measurement[] {
  const figures: [keyof Omit<PhaseCost, "phase">, string, string][] = [
    ["wallSeconds", "wall", "s"],
    ["cpuSeconds", "CPU", "s"],
    ["serverCpuSeconds", "server CPU", "s"],
    ["requests", "requests", "calls"],
    ["residentMb", "memory", "MB"],
    ["peakMb", "peak memory", "MB"],
  ];
  return (ours ?? peer ?? []).flatMap(({ phase }) => {
    const costOf = (costs?: PhaseCost[]) => costs?.find((cost) => cost.phase === phase);
    const [our, theirs] = [costOf(ours), costOf(peer)];
    return figures.map(([figure, name, unit]): Measurement => {
      const sides = {
        ...(our === undefined ? {} : { ours: our[figure] }),
        ...(theirs === undefined ? {} : { peer: theirs[figure] }),
      };
      return { name: `${phase}: ${name}`, unit, better: "lower", ...sides };
    });
  });
}
