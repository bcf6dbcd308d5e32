// The cost of recording and rendering metrics: the runtime's own registry compared with two libraries.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startChild } from "../child.js";
import { medianOf, type BenchmarkResult, type Measurement } from "../measurement.js";
import type { MetricsCost, MetricsProbeSettings } from "./metrics-probe.js";

const RUNS = 7;
/** Release lines that support Node.js 20. */
const PACKAGES = [
  "prom-client@15.1.3",
  "@opentelemetry/sdk-metrics@2.7.1",
  "@opentelemetry/exporter-prometheus@0.218.0",
];
const API = "@opentelemetry/api@1.9.1";
const REGISTRIES = ["ours", "prom-client", "opentelemetry"] as const;

/** Measures the runtime's metrics registry beside prom-client and OpenTelemetry. */
export async function measureMetrics(): Promise<BenchmarkResult> {
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  try {
    await writeFile(join(folder, "package.json"), '{ "private": true }\n');
    const install = ["install", "--no-audit", "--no-fund", "--prefer-offline", ...PACKAGES, API];
    await promisify(execFile)("npm", install, { cwd: folder });
    const runs = new Map<string, MetricsCost[]>();
    for (let run = 0; run < RUNS; run++)
      for (const registry of REGISTRIES)
        runs.set(registry, [...(runs.get(registry) ?? []), await measureOne({ registry, folder })]);
    const row = (name: string, unit: string, read: (cost: MetricsCost) => number): Measurement => {
      const [ours = Number.NaN, ...peers] = REGISTRIES.map((registry) => medianOf(runs.get(registry)!, read));
      return { name, unit, better: "lower", ours, peers };
    };
    return {
      benchmark: "metrics",
      peers: ["prom-client", "OpenTelemetry"],
      notes: [
        `the metrics of a reconcile with four dependents and five requests, in a process that has undici and node:http loaded; medians of ${RUNS} processes`,
        `${PACKAGES.join(", ")}: lines that run on Node 20`,
      ],
      measurements: [
        row("start", "ms", ({ startMs }) => startMs),
        row("memory after it", "MB", ({ memoryMb }) => memoryMb),
        row("CPU for each reconcile", "µs", ({ cpuMicroseconds }) => cpuMicroseconds),
      ],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureOne(settings: MetricsProbeSettings): Promise<MetricsCost> {
  await using child = startChild(new URL("./metrics-probe.js", import.meta.url), settings, ["--expose-gc"]);
  return await child.receive<MetricsCost>();
}
