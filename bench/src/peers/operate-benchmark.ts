// What leader election, probes and metrics cost an operator of ours: the workload of the peers with and without them, in turns.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "#test/support/machine/free-ports.js";
import { medianOf, type BenchmarkResult, type Measurement } from "../measurement.js";
import type { OperatorCommand } from "../operators/operator-process.js";
import { tellProgress } from "../progress.js";
import { measurePhases, type PhaseCost } from "./operator-phases.js";
import { buildOurOperator } from "./our-operator.js";
import { NAMESPACE } from "./web-page.js";

const TURNS = 3;
/** As often as a kubelet and a Prometheus ask. */
const ASK_MS = 10_000;

function operatedAt(plain: OperatorCommand, probes: number, metrics: number): OperatorCommand {
  const addresses = [`--health-probe-bind-address=127.0.0.1:${probes}`, `--metrics-bind-address=127.0.0.1:${metrics}`];
  const election = ["--leader-elect", `--leader-election-namespace=${NAMESPACE}`];
  return { ...plain, args: [...plain.args, ...election, ...addresses] };
}

/** Measures an operator that somebody looks at all the time. */
async function measureOperated(
  operator: OperatorCommand,
  options: Parameters<typeof measurePhases>[1],
): Promise<PhaseCost[]> {
  const [probes = 0, metrics = 0] = await freePorts(2);
  const ask = (url: string) =>
    fetch(url).then(
      (response) => response.text(),
      // It may not have started, or restart.
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

/** Measures ours with all that operating it takes, and beside it ours with nothing of that. */
export async function measureOperate({ count }: { readonly count: number }): Promise<BenchmarkResult> {
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const logFile = join(folder, "operators.log");
  const runs: { readonly full: PhaseCost[]; readonly plain: PhaseCost[] }[] = [];
  try {
    const operator = await buildOurOperator(folder);
    for (let turn = 1; turn <= TURNS; turn++) {
      tellProgress(`operate: turn ${turn} of ${TURNS}, with`);
      const full = await measureOperated(operator, { count, logFile });
      tellProgress(`operate: turn ${turn} of ${TURNS}, without`);
      const plain = await measurePhases(operator, { count, logFile });
      runs.push({ full, plain });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const row = (name: string, unit: string, read: (costs: readonly PhaseCost[]) => number): Measurement => ({
    ...{ name, unit, better: "lower", ours: medianOf(runs, ({ full }) => read(full)) },
    peers: [medianOf(runs, ({ plain }) => read(plain))],
  });
  const phases = runs[0]!.full.map(({ phase }) => phase);
  const cpuOf = (costs: readonly PhaseCost[], phase: string) =>
    costs.find((cost) => cost.phase === phase)?.cpuSeconds ?? Number.NaN;
  return {
    benchmark: "operate",
    peers: ["ours without"],
    notes: [
      `${count} custom resources with four dependents each; medians of ${TURNS} runs of each, in turns; probes and metrics are asked for every 10 s`,
    ],
    measurements: [
      ...phases.map((phase) => row(`${phase}: CPU`, "s", (costs) => cpuOf(costs, phase))),
      row("CPU of all phases", "s", (costs) => costs.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)),
      row("memory at the end", "MB", (costs) => costs.at(-1)!.residentMb),
      row("peak memory", "MB", (costs) => Math.max(...costs.map(({ peakMb }) => peakMb))),
    ],
  };
}
