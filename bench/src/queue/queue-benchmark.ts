import { startChild } from "../child.js";
import { type BenchmarkResult, type Measurement, medianOf } from "../measurement.js";
import type { QueueReport, QueueSettings } from "./queue-load.js";

const EVENTS = 1_000_000;
const PRIMARIES = 10_000;
const RUNS = 3;

/** Measures how many events per CPU second a controller processes, with reconciles that find nothing to do. */
export async function measureQueue(): Promise<BenchmarkResult> {
  const kinds = ["primary", "secondary"] as const;
  const measurements: Measurement[] = [];
  for (const kind of kinds) {
    const reports: QueueReport[] = [];
    for (let run = 0; run < RUNS; run++) reports.push(await runLoad({ kind, events: EVENTS, primaries: PRIMARIES }));
    const rateOf = ({ events, cpuSeconds }: QueueReport) => events / cpuSeconds;
    measurements.push(
      { name: `${kind} events`, unit: "1/CPU s", better: "higher", ours: medianOf(reports, rateOf) },
      {
        name: `${kind} events: reconciles`,
        unit: "1/CPU s",
        better: "higher",
        ours: medianOf(reports, ({ reconciles, cpuSeconds }) => reconciles / cpuSeconds),
      },
    );
  }
  return {
    benchmark: "queue",
    peers: [],
    notes: [
      `${EVENTS} events of ${PRIMARIES} primaries in 20 namespaces, 100 in a turn of the event loop; medians of ${RUNS} runs`,
      "CPU of the whole process with its collector, so that other work on the machine does not count",
      "counted from an event being told to the end of the last reconcile; the objects of the events are made before, 10,000 at a time",
    ],
    measurements,
  };
}

async function runLoad(settings: QueueSettings): Promise<QueueReport> {
  await using child = startChild(new URL("./queue-load.js", import.meta.url), settings);
  return await child.receive<QueueReport>();
}
