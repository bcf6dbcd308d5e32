import { spawn } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { quantile } from "../measurement.js";

/** What a program of Node's costs from its start to its end, with the programs that it starts. */
export interface ProgramCost {
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
  /** Of the largest process. */
  readonly peakMb: number;
}

/** A program of Node's and where it runs. */
export interface NodeProgram {
  readonly args: readonly string[];
  readonly folder: string;
  /** Runs before every measurement and is not measured. */
  readonly prepare?: () => Promise<void>;
}

/** A process knows itself what it has used, its threads included; the file is loaded into each process and thread before anything else. */
const REPORTER = `
if (require("node:worker_threads").isMainThread) process.once("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const line = JSON.stringify({ cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakMb: maxRSS / 1024 });
  require("node:fs").appendFileSync(process.env.USAGE_FILE, line + "\\n");
});
`;

/**
 * Returns the medians of so many runs of each program; a run that fails is an error. `folder` is for files of the measurement's own.
 *
 * The programs take turns, so that what else the machine has to do concerns them alike.
 */
export async function measurePrograms<Name extends string>(
  programs: Readonly<Record<Name, NodeProgram>>,
  runs: number,
  folder: string,
): Promise<Record<Name, ProgramCost>> {
  const names = Object.keys(programs) as Name[];
  const costs = new Map<Name, ProgramCost[]>(names.map((name) => [name, []]));
  for (let run = 0; run < runs; run++)
    for (const [name, taken] of costs) taken.push(await measureOnce(programs[name], folder));
  return Object.fromEntries([...costs].map(([name, taken]) => [name, medianOf(taken)])) as Record<Name, ProgramCost>;
}

function medianOf(costs: readonly ProgramCost[]): ProgramCost {
  const of = (figure: keyof ProgramCost) =>
    quantile(
      costs.map((cost) => cost[figure]),
      0.5,
    );
  return { wallSeconds: of("wallSeconds"), cpuSeconds: of("cpuSeconds"), peakMb: of("peakMb") };
}

async function measureOnce({ args, folder, prepare }: NodeProgram, own: string): Promise<ProgramCost> {
  const [reporter, usageFile] = [join(own, "reporter.cjs"), join(own, "usage")];
  await writeFile(reporter, REPORTER);
  await rm(usageFile, { force: true });
  await prepare?.();
  const startedAt = performance.now();
  await runNode(args, { cwd: folder, env: { NODE_OPTIONS: `--require ${reporter}`, USAGE_FILE: usageFile } });
  const wallSeconds = (performance.now() - startedAt) / 1000;
  const lines = (await readFile(usageFile, "utf8")).trim().split("\n");
  const processes = lines.map((line) => JSON.parse(line) as Omit<ProgramCost, "wallSeconds">);
  return {
    wallSeconds,
    cpuSeconds: processes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    peakMb: Math.max(...processes.map(({ peakMb }) => peakMb)),
  };
}

function runNode(args: readonly string[], { cwd, env }: { cwd: string; env: Record<string, string> }): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("error", fail);
    child.once("close", (code) =>
      code === 0 ? done() : fail(new Error(`node ${args.join(" ")} exited with ${code}:\n${output.slice(-2000)}`)),
    );
  });
}
