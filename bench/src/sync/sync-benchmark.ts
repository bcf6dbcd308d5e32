// An initial list of many objects followed by many events, on the runtime's informer and on that of client-node. Both do the same work for each
// event: they look up the owner, enqueue it once, and reconcile it as a no-op. The queue and controller of the runtime are measured separately.
import { startChild } from "../child.js";
import { type BenchmarkResult, type Measurement, medianOf } from "../measurement.js";
import type { SyncReport } from "./sync-probe.js";
import { startSyntheticServer } from "./server-process.js";

const OBJECTS = 50_000;
const EVENTS = 100_000;
const RUNS = 3;
// For both clients: with the default young generation of 16 MB, V8 copies long-lived objects of a burst of events.
const NODE_ARGUMENTS = ["--max-semi-space-size=32", "--expose-gc"];
const CLIENTS = {
  ours: new URL("./our-client.js", import.meta.url),
  peer: new URL("./peer-client.js", import.meta.url),
};

/** Measures both clients in turns, so that other load on the machine affects both. */
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
