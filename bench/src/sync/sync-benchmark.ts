// The whole state of many objects and then many events, on the runtime's informer and on that of client-node, with the same work behind
// each: the owner of the object, a queue that has each owner once, a reconcile that finds nothing to do. The runtime's own queue and
// controller are measured by themselves.
import { startChild } from "../child.js";
import { type BenchmarkResult, type Measurement, medianOf } from "../measurement.js";
import type { SyncReport } from "./sync-probe.js";
import { startSyntheticServer } from "./server-process.js";

const OBJECTS = 50_000;
const EVENTS = 100_000;
const RUNS = 3;
// For both: the young generation's default of 16 MB makes V8 copy what a burst of events keeps for good.
const NODE_ARGUMENTS = ["--max-semi-space-size=32", "--expose-gc"];
const CLIENTS = {
  ours: new URL("./our-client.js", import.meta.url),
  peer: new URL("./peer-client.js", import.meta.url),
};

/** Measures both clients in turn, so that what else the machine does concerns both. */
export async function measureSync(): Promise<BenchmarkResult> {
  const reports: Record<keyof typeof CLIENTS, SyncReport[]> = { ours: [], peer: [] };
  for (let run = 0; run < RUNS; run++)
    for (const side of ["ours", "peer"] as const) reports[side].push(await runClient(CLIENTS[side]));
  const figures: [keyof SyncReport, string, string][] = [
    ["syncedSeconds", "until synced, wall", "s"],
    ["syncedCpuSeconds", "until synced, CPU", "s"],
    ["eventsSeconds", "events, wall", "s"],
    ["totalCpuSeconds", "total CPU", "s"],
    ["peakMb", "peak memory", "MB"],
    ["heapMb", "heap after a collection", "MB"],
    ["stallMs", "longest stall of the event loop", "ms"],
  ];
  return {
    benchmark: "sync",
    peers: ["client-node"],
    notes: [
      `${OBJECTS} Deployments of 4.5 kB and ${EVENTS} events over TLS, a server in a process of its own; medians of ${RUNS} runs`,
      "ours keeps what is behind the metadata as text until it is read, and nobody reads it; the peer parses everything, and cannot do otherwise",
      "behind both the same small queue; the runtime's controller is measured by the benchmark queue",
      `both with ${NODE_ARGUMENTS[0]}; CPU is user and system time of the whole process, memory its VmHWM`,
    ],
    measurements: figures.map(([figure, name, unit]): Measurement => ({
      name,
      unit,
      better: "lower",
      ours: medianOf(reports.ours, (report) => report[figure]),
      peers: [medianOf(reports.peer, (report) => report[figure])],
    })),
  };
}

async function runClient(module: URL): Promise<SyncReport> {
  await using server = await startSyntheticServer({ objects: OBJECTS, hasWatchList: true });
  await using client = startChild(
    module,
    { url: server.url, ca: server.ca, objects: OBJECTS, events: EVENTS },
    NODE_ARGUMENTS,
  );
  await client.receive();
  server.send({ kind: "events", count: EVENTS });
  return await client.receive<SyncReport>();
}
