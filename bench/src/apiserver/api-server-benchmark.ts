import { findBinary } from "#test/support/machine/binaries.js";
import { medianOf, type BenchmarkResult, type Measurement } from "../measurement.js";
import { measureLoad, type LoadFigures } from "./measure-load.js";
import { measureWrites, type WriteFigures } from "./measure-writes.js";
import { publishEmbedded, startEmbedded, startKubeApiServer, type StartServer } from "./running-server.js";

/** The figures of a server. */
interface ServerFigures {
  start: StartFigures;
  load: LoadFigures;
  plain: WriteFigures;
  guarded: WriteFigures;
  durable: WriteFigures;
}

/** The cost of a start. `loadMs` and `startMs` are known only for the embedded server. */
interface StartFigures {
  readyMs: number;
  loadMs: number | undefined;
  startMs: number | undefined;
  idleMb: number;
}

const STARTS = 5;
const IDLE_MS = 1_000;

/** Measures the embedded server beside kube-apiserver with etcd: writes in turns, everything else one server after the other. */
export async function measureApiServers(): Promise<BenchmarkResult> {
  await publishEmbedded();
  const hasPeer = findBinary("etcd") !== undefined && findBinary("kube-apiserver") !== undefined;
  const [ours, peer] = await measure([startEmbedded, ...(hasPeer ? [startKubeApiServer] : [])]);
  const notes = [
    "Writes are those of 10 clients over TLS, measured in turns: medians of six rounds of 2,000 creates and 800 applies, after 12,000 and 4,500. " +
      "Without a disk, etcd runs with --unsafe-no-fsync and keeps nothing safe either. " +
      "The memory of an object is that of the heap after a collection of garbage for ours, and resident memory for the peer.",
    ...(hasPeer ? [] : ['kube-apiserver was not measured: build it with "node test/dist/control-plane/build.js"']),
  ];
  const peers = ["kube-apiserver + etcd"];
  return { benchmark: "apiserver", peers, notes, measurements: measurementsOf(ours!, peer) };
}

async function measure(starts: readonly StartServer[]): Promise<ServerFigures[]> {
  const started: StartFigures[] = [];
  for (const start of starts) started.push(await measureStarts(start));
  const plain = await measureWrites(starts, { isDurable: false, isGuarded: false });
  const guarded = await measureWrites(starts, { isDurable: false, isGuarded: true });
  const durable = await measureWrites(starts, { isDurable: true, isGuarded: false });
  const load: LoadFigures[] = [];
  for (const start of starts) {
    await using server = await start({ isDurable: false });
    load.push(await measureLoad(server));
  }
  return starts.map((_, index) => ({
    start: started[index]!,
    load: load[index]!,
    plain: plain[index]!,
    guarded: guarded[index]!,
    durable: durable[index]!,
  }));
}

async function measureStarts(start: StartServer): Promise<StartFigures> {
  const started: { readyMs: number; loadMs?: number; startMs?: number; idleMb: number }[] = [];
  for (let run = 0; run < STARTS; run++) {
    await using server = await start({ isDurable: false });
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    started.push({ readyMs: server.readyMs, ...server.inProcess, idleMb: server.usage().residentMb });
  }
  const isEmbedded = started[0]?.startMs !== undefined;
  return {
    readyMs: medianOf(started, ({ readyMs }) => readyMs),
    idleMb: medianOf(started, ({ idleMb }) => idleMb),
    loadMs: isEmbedded ? medianOf(started, ({ loadMs }) => loadMs!) : undefined,
    startMs: isEmbedded ? medianOf(started, ({ startMs }) => startMs!) : undefined,
  };
}

function measurementsOf(ours: ServerFigures, peer: ServerFigures | undefined): Measurement[] {
  type Row = [name: string, unit: string, read: (figures: ServerFigures) => number | undefined, Measurement["better"]];
  const rows: Row[] = [
    ["ready in a process that runs", "ms", ({ start }) => start.startMs, "lower"],
    ["loading its modules before that", "ms", ({ start }) => start.loadMs, "lower"],
    ["ready as a process", "ms", ({ start }) => start.readyMs, "lower"],
    ["idle memory", "MB", ({ start }) => start.idleMb, "lower"],
    ["create ConfigMap, the first 2,000", "1/s", ({ plain }) => plain.firstCreatesPerSecond, "higher"],
    ["apply Deployment, the first 500", "1/s", ({ plain }) => plain.firstAppliesPerSecond, "higher"],
    ["create ConfigMap", "1/s", ({ plain }) => plain.createsPerSecond, "higher"],
    ["apply Deployment", "1/s", ({ plain }) => plain.appliesPerSecond, "higher"],
    ["CPU of a create", "µs", ({ plain }) => plain.createCpuUs, "lower"],
    ["CPU of an apply", "µs", ({ plain }) => plain.applyCpuUs, "lower"],
    ["create, with RBAC and a webhook", "1/s", ({ guarded }) => guarded.createsPerSecond, "higher"],
    ["apply, with RBAC and a webhook", "1/s", ({ guarded }) => guarded.appliesPerSecond, "higher"],
    ["CPU of that create", "µs", ({ guarded }) => guarded.createCpuUs, "lower"],
    ["CPU of that apply", "µs", ({ guarded }) => guarded.applyCpuUs, "lower"],
    ["create, on disk", "1/s", ({ durable }) => durable.createsPerSecond, "higher"],
    ["apply, on disk", "1/s", ({ durable }) => durable.appliesPerSecond, "higher"],
    ["list 10,000 ConfigMaps", "ms", ({ load }) => load.listMs, "lower"],
    ["write until seen, 1,000 watchers, p50", "ms", ({ load }) => load.fanOutP50Ms, "lower"],
    ["write until seen, 1,000 watchers, p99", "ms", ({ load }) => load.fanOutP99Ms, "lower"],
    ["memory of an object", "× its JSON", ({ load }) => load.bytesPerByte, "lower"],
  ];
  return rows.map(([name, unit, read, better]) => {
    const own = read(ours);
    return {
      ...{ name, unit, better },
      ...(own === undefined ? {} : { ours: own }),
      ...(peer === undefined ? {} : { peers: [read(peer)] }),
    };
  });
}
