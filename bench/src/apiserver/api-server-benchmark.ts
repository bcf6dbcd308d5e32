import { once } from "node:events";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { findBinary } from "#test/support/binaries.js";
import { startControlPlane } from "#test/support/control-plane.js";
import type { Connection } from "../load-client.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import { type LoadFigures, measureLoad } from "./measure-load.js";

/** The figures of one server. */
interface ServerFigures extends LoadFigures {
  startMs: number;
}

interface RunningServer extends AsyncDisposable {
  connection: Connection;
}

/** Measures the embedded server and kube-apiserver, one after the other. */
export async function measureApiServers(): Promise<BenchmarkResult> {
  const ours = await measure(startEmbedded);
  const hasPeer = findBinary("etcd") !== undefined && findBinary("kube-apiserver") !== undefined;
  const peer = hasPeer ? await measure(startKubeApiServer) : undefined;
  const notes = hasPeer
    ? []
    : ['kube-apiserver was not measured: build it with "node test/dist/control-plane/build.js"'];
  return { benchmark: "apiserver", peers: ["kube-apiserver"], notes, measurements: measurementsOf(ours, peer) };
}

async function measure(start: () => Promise<RunningServer>): Promise<ServerFigures> {
  const startedAt = performance.now();
  await using server = await start();
  const startMs = performance.now() - startedAt;
  return { startMs, ...(await measureLoad(server.connection)) };
}

async function startKubeApiServer(): Promise<RunningServer> {
  const plane = await startControlPlane();
  return { connection: plane, [Symbol.asyncDispose]: () => plane.close() };
}

async function startEmbedded(): Promise<RunningServer> {
  const program = fileURLToPath(new URL("embedded-server.js", import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const first = await lines.next();
  if (first.done === true) throw new Error("the embedded server ended before it was ready");
  return {
    connection: JSON.parse(first.value) as Connection,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

function measurementsOf(ours: ServerFigures, peer: ServerFigures | undefined): Measurement[] {
  const rows: [keyof ServerFigures, string, string, Measurement["better"]][] = [
    ["startMs", "start until ready", "ms", "lower"],
    ["createsPerSecond", "create ConfigMap", "1/s", "higher"],
    ["appliesPerSecond", "apply Deployment", "1/s", "higher"],
    ["listMs", "list 2,000 ConfigMaps", "ms", "lower"],
    ["fanOutP50Ms", "write until seen, 10 watchers, p50", "ms", "lower"],
    ["fanOutP99Ms", "write until seen, 10 watchers, p99", "ms", "lower"],
  ];
  return rows.map(([figure, name, unit, better]) => ({
    name,
    unit,
    better,
    ours: ours[figure],
    ...(peer === undefined ? {} : { peers: [peer[figure]] }),
  }));
}
