// Three graphs of dependents on our operator and on a JOSDK operator (bench/josdk-workflow), with the same API server.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { repositoryRoot } from "#test/support/repository.js";
import { messageOf } from "#runtime/base/logger.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import { buildOnce } from "../operators/build-once.js";
import type { OperatorCommand } from "../operators/operator-process.js";
import { describeCounts, totalOf } from "../operators/request-counts.js";
import { tellProgress } from "../progress.js";
import { type ShapeName, shapeOf } from "./shapes.js";
import { type GraphCosts, MANY, measureGraph, type RoundCost } from "./workflow-run.js";

const OURS = fileURLToPath(new URL("./graph-operator.js", import.meta.url));
const PEER = join(repositoryRoot, "bench/josdk-workflow");
const MAVEN = { program: "mvn", args: ["-q", "-B", "package"] };
const TITLES: { readonly [Shape in ShapeName]: string } = {
  chain: "chain of 10",
  fan: "fan-out of 100",
  grid: "grid of 10 × 10",
};

/** Measures both operators on each graph. If the peer cannot be built, it is skipped and a note is added. */
export async function measureWorkflow(): Promise<BenchmarkResult> {
  if (process.platform !== "linux") throw new Error("this benchmark reads /proc and runs on Linux only");
  const notes: string[] = [];
  const jar = await buildPeer().catch((error: unknown) => {
    notes.push(`the peer was not measured: ${messageOf(error)}`);
    return undefined;
  });
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const measurements: Measurement[] = [];
  try {
    for (const [name, title] of Object.entries(TITLES) as [ShapeName, string][]) {
      const measure = async (command: OperatorCommand): Promise<GraphCosts | undefined> => {
        try {
          tellProgress(`workflow: ${title}, ${command.name}`);
          const logFile = join(folder, `${command.name}-${name}.log`);
          return await measureGraph(command, { nodes: shapeOf(name).size, logFile });
        } catch (error) {
          notes.push(`${title} of ${command.name} was not measured: ${messageOf(error)}`);
          return undefined;
        }
      };
      const ours = await measure({ name: "gen-operator", program: process.execPath, args: [OURS, name] });
      const peer = jar === undefined ? undefined : await measure(peerCommand(jar, name));
      measurements.push(...rowsOf(title, ours, peer));
      notes.push(`${title}: ours ${describe(ours)}; JOSDK ${describe(peer)}`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return { benchmark: "workflow", peers: ["JOSDK"], notes: [...NOTES, ...notes], measurements };
}

const NOTES = [
  `ConfigMaps that are ready as soon as they exist; a process that has just started gets 1 primary, then ${MANY} more, and then a new generation of those that changes nothing of what is desired`,
  "wall until all dependents exist and each primary was reconciled; CPU and requests with what follows until all is quiet; JOSDK 5.2.3 with -Xmx256m -XX:+UseSerialGC, one informer for all nodes, everything applied",
];

async function buildPeer(): Promise<string> {
  const folder = await buildOnce({ name: "josdk-workflow", source: PEER, steps: [MAVEN] });
  return join(folder, "target/josdk-workflow.jar");
}

function peerCommand(jar: string, shape: ShapeName): OperatorCommand {
  return { name: "josdk", program: "java", args: ["-Xmx256m", "-XX:+UseSerialGC", "-jar", jar, shape] };
}

function rowsOf(title: string, ours: GraphCosts | undefined, peer: GraphCosts | undefined): Measurement[] {
  const rounds = [
    ["first", "1 primary"],
    ["many", `${MANY} primaries`],
    ["again", `${MANY} again`],
  ] as const;
  const figures: [string, string, (cost: RoundCost) => number][] = [
    ["wall", "ms", ({ wallMs }) => wallMs],
    ["CPU", "s", ({ cpuSeconds }) => cpuSeconds],
    ["server CPU", "s", ({ serverCpuSeconds }) => serverCpuSeconds],
    ["requests", "calls", ({ requests }) => totalOf(requests)],
    ["reconciles", "calls", ({ reconciles }) => reconciles],
  ];
  const row = (name: string, unit: string, read: (costs: GraphCosts) => number): Measurement => ({
    name: `${title}, ${name}`,
    unit,
    better: "lower",
    ...(ours === undefined ? {} : { ours: read(ours) }),
    peers: [peer && read(peer)],
  });
  return [
    ...rounds.flatMap(([round, rounded]) =>
      figures.map(([name, unit, read]) => row(`${rounded}: ${name}`, unit, (costs) => read(costs[round]))),
    ),
    row("peak memory", "MB", ({ again }) => again.peakMb),
  ];
}

function describe(costs: GraphCosts | undefined): string {
  if (costs === undefined) return "nothing";
  const { first, many, again } = costs;
  return [first, many, again].map(({ requests }) => describeCounts(requests)).join(" – ");
}
