// The watch of many objects expires, so that the client relists while it still holds the old state.
import { startChild } from "../child.js";
import { type BenchmarkResult, type Measurement, medianOf } from "../measurement.js";
import { startSyntheticServer } from "../sync/server-process.js";
import type { RelistReport } from "./relist-probe.js";

const OBJECTS = 50_000;
const CHANGED = 500;
const RUNS = 3;
const NODE_ARGUMENTS = ["--max-semi-space-size=32", "--expose-gc"];

/** Measures a relist by WatchList and by paginated lists, and that of the peer, which supports neither. */
export async function measureRelist(): Promise<BenchmarkResult> {
  const sides = { watchList: [] as RelistReport[], pages: [] as RelistReport[], peer: [] as RelistReport[] };
  for (let run = 0; run < RUNS; run++) {
    sides.watchList.push(await relist("./our-client.js", true));
    sides.pages.push(await relist("./our-client.js", false));
    sides.peer.push(await relist("./peer-client.js", false));
  }
  const figures: [string, string, (report: RelistReport) => number][] = [
    ["steady memory", "MB", ({ steadyMb }) => steadyMb],
    ["peak memory", "MB", ({ peakMb }) => peakMb],
    ["peak over steady memory", "×", ({ peakMb, steadyMb }) => peakMb / steadyMb],
    ["CPU", "s", ({ cpuSeconds }) => cpuSeconds],
    ["wall", "s", ({ seconds }) => seconds],
  ];
  const measurementsOf = (title: string, ours: RelistReport[]) =>
    figures.map(([name, unit, read]): Measurement => ({
      name: `${title}: ${name}`,
      unit,
      better: "lower",
      ours: medianOf(ours, read),
      peers: [medianOf(sides.peer, read)],
    }));
  return {
    benchmark: "relist",
    peers: ["client-node"],
    notes: [
      `${OBJECTS} Deployments of 4.5 kB, of which ${CHANGED} changed while the watch was away; medians of ${RUNS} runs`,
      "memory is resident memory: steady after collections, peak the kernel's high-water mark from there on",
      "client-node lists without pages",
    ],
    measurements: [...measurementsOf("WatchList", sides.watchList), ...measurementsOf("pages", sides.pages)],
  };
}

async function relist(module: string, hasWatchList: boolean): Promise<RelistReport> {
  await using server = await startSyntheticServer({ objects: OBJECTS, hasWatchList });
  const settings = { url: server.url, ca: server.ca, objects: OBJECTS, changed: CHANGED };
  await using client = startChild(new URL(module, import.meta.url), settings, NODE_ARGUMENTS);
  await client.receive();
  server.send({ kind: "expire", changed: CHANGED });
  return await client.receive<RelistReport>();
}
