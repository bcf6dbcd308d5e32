// The cost of leader election, probes, and metrics: the peer workload with and without them, in turns.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "#test/support/machine/free-ports.js";
import type { BenchmarkResult } from "../measurement.js";
import type { OperatorCommand } from "../operators/operator-process.js";
import { tellProgress } from "../progress.js";
import { measurePhases, type PhaseCost } from "./operator-phases.js";
import { buildOurOperator } from "./our-operator.js";
import { measureInTurns, memoryAtEnd, ofAllPhases, ofPhase, peakMemory, rowOf, type Run } from "./turns.js";
import { NAMESPACE } from "./web-page.js";

const TURNS = 3;
/** A typical interval of kubelet probes and Prometheus scrapes. */
const ASK_MS = 10_000;

function operatedAt(plain: OperatorCommand, probes: number, metrics: number): OperatorCommand {
  const addresses = [`--health-probe-bind-address=127.0.0.1:${probes}`, `--metrics-bind-address=127.0.0.1:${metrics}`];
  const election = ["--leader-elect", `--leader-election-namespace=${NAMESPACE}`];
  return { ...plain, args: [...plain.args, ...election, ...addresses] };
}

/** Measures an operator that is probed and scraped regularly. */
async function measureOperated(operator: OperatorCommand, options: Parameters<typeof measurePhases>[1]): Promise<Run> {
  const [probes = 0, metrics = 0] = await freePorts(2);
  const ask = (url: string) =>
    fetch(url).then(
      (response) => response.text(),
      // The operator may not be running yet, or may be restarting.
      () => "",
    );
  const timer = setInterval(() => {
    void ask(`http://127.0.0.1:${probes}/readyz`);
    void ask(`http://127.0.0.1:${metrics}/metrics`);
  }, ASK_MS);
  try {
    return await measurePhases(operatedAt(operator, probes, metrics), options);
  } finally {
    clearInterval(timer);
  }
}

/** Measures our operator with leader election, probes, and metrics, and without them. */
export async function measureOperate({ count }: { readonly count: number }): Promise<BenchmarkResult> {
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const options = { count, logFile: join(folder, "operators.log") };
  try {
    const operator = await buildOurOperator(folder);
    const contestants = [
      { name: "with", measure: () => measureOperated(operator, options) },
      { name: "without", measure: () => measurePhases(operator, options) },
    ];
    const onTurn = (text: string) => tellProgress(`operate: ${text}`);
    const runs = await measureInTurns(contestants, { turns: TURNS, onTurn });
    const phases = runs[0]![0]!.map(({ phase }) => phase);
    const cpu = ({ cpuSeconds }: PhaseCost) => cpuSeconds;
    return {
      benchmark: "operate",
      peers: ["ours without"],
      notes: [
        `${count} custom resources with four dependents each; medians of ${TURNS} runs of each, in turns; probes and metrics are asked for every 10 s`,
      ],
      measurements: [
        ...phases.map((phase) => rowOf(runs, { name: `${phase}: CPU`, unit: "s", read: ofPhase(phase, cpu) })),
        rowOf(runs, { name: "CPU of all phases", unit: "s", read: ofAllPhases(cpu) }),
        rowOf(runs, { name: "memory at the end", unit: "MB", read: memoryAtEnd }),
        rowOf(runs, { name: "peak memory", unit: "MB", read: peakMemory }),
      ],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
