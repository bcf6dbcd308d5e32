import { startChild } from "../child.js";
import { type BenchmarkResult, type Measurement, medianOf } from "../measurement.js";
import type { FairnessReport, FairnessSettings } from "./fairness-load.js";

const CROWD = 10_000;
const RUNS = 3;

/** Measures how long one primary waits in a queue with ten thousand others, compared to a first-come, first-served queue. */
export async function measureFairness(): Promise<BenchmarkResult> {
  const peer = await runScene("first-come");
  const measurements: Measurement[] = [];
  const scenes = [
    ["namespace", "alone in its namespace"],
    ["edit", "edited during the first list"],
  ] as const;
  for (const [scene, title] of scenes) {
    const ours = await runScene(scene);
    measurements.push(
      measurementOf(`${title}: wait`, "ms", { ours, peer, read: ({ waitedMs }) => waitedMs }),
      measurementOf(`${title}: reconciles before it`, "calls", { ours, peer, read: ({ before }) => before }),
    );
  }
  return {
    benchmark: "fairness",
    peers: ["first come, first served"],
    notes: [
      `one primary behind ${CROWD} that are ready, 50 at once, 5 ms each; medians of ${RUNS} runs`,
      "the peer is the order of JOSDK and of controller-runtime's default queue, played by ours with one namespace and one priority",
    ],
    measurements,
  };
}

function measurementOf(
  name: string,
  unit: string,
  { ours, peer, read }: { ours: FairnessReport[]; peer: FairnessReport[]; read: (report: FairnessReport) => number },
): Measurement {
  return { name, unit, better: "lower", ours: medianOf(ours, read), peers: [medianOf(peer, read)] };
}

async function runScene(scene: FairnessSettings["scene"]): Promise<FairnessReport[]> {
  const reports: FairnessReport[] = [];
  for (let run = 0; run < RUNS; run++) {
    await using child = startChild(new URL("./fairness-load.js", import.meta.url), { scene, crowd: CROWD });
    reports.push(await child.receive<FairnessReport>());
  }
  return reports;
}
