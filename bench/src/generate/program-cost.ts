import { spawn } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { quantile } from "../measurement.js";

/** The cost of a Node.js program from start to exit, including its child processes. */
export interface ProgramCost {
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
  /** The peak memory of the largest process. */
  readonly peakMb: number;
}

/** A Node.js program and its working folder. */
export interface NodeProgram {
  readonly args: readonly string[];
  readonly folder: string;
  /** Runs before each measurement and is not measured. */
  readonly prepare?: () => Promise<void>;
}

/** A process reports its own resource usage, including that of its threads. The file is preloaded into each process and thread. */
const REPORTER = `
if (require("node:worker_threads").isMainThread) process.once("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const line = JSON.stringify({ cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakMb: maxRSS / 1024 });
  require("node:fs").appendFileSync(process.env.USAGE_FILE, line + "\\n");
});
`;

/**
 * Returns the medians of `runs` runs of each program; throws if a run fails. `folder` is for temporary files.
 *
 * The programs take turns, so that other load on the machine affects all of them.
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
