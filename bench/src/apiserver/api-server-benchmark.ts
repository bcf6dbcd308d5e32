import { findBinary } from "#test/support/binaries.js";
import { startWebhookServer } from "#test/support/webhook-server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { createLoadClient } from "../load-client.js";
import { medianOf, type BenchmarkResult, type Measurement } from "../measurement.js";
import { createConfigMap, createNamespace, installRole, installWebhook } from "./load-requests.js";
import { measureLoad, measureWrites, type LoadFigures, type WriteFigures } from "./measure-load.js";
import {
  publishEmbedded,
  startEmbedded,
  startKubeApiServer,
  type RunningServer,
  type ServerOptions,
} from "./running-server.js";

/** The figures of one server. */
interface ServerFigures {
  readyMs: number;
  loadMs?: number;
  startMs?: number;
  idleMb: number;
  load: LoadFigures;
  guarded: WriteFigures;
  durable: WriteFigures;
}

type Start = (options: ServerOptions) => Promise<RunningServer>;

const STARTS = 5;
const IDLE_MS = 1_000;
const USER = "bench-user";

/** Measures the embedded server and kube-apiserver with etcd, one after the other. */
export async function measureApiServers(): Promise<BenchmarkResult> {
  await publishEmbedded();
  const ours = await measure(startEmbedded);
  const hasPeer = findBinary("etcd") !== undefined && findBinary("kube-apiserver") !== undefined;
  const peer = hasPeer ? await measure(startKubeApiServer) : undefined;
  const notes = [
    "Writes are those of 10 clients over TLS: 10,000 creates and 4,000 applies, after as many. " +
      "Without a disk, etcd runs with --unsafe-no-fsync and keeps nothing safe either. " +
      "The memory of an object is that of the heap after a collection of garbage for ours, and resident memory for the peer.",
    ...(hasPeer ? [] : ['kube-apiserver was not measured: build it with "node test/dist/control-plane/build.js"']),
  ];
  const peers = ["kube-apiserver + etcd"];
  return { benchmark: "apiserver", peers, notes, measurements: measurementsOf(ours, peer) };
}

async function measure(start: Start): Promise<ServerFigures> {
  const started: Pick<ServerFigures, "readyMs" | "loadMs" | "startMs" | "idleMb">[] = [];
  for (let run = 0; run < STARTS; run++) {
    await using server = await start({ isDurable: false });
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    started.push({ readyMs: server.readyMs, ...server.inProcess, idleMb: server.residentMb() });
  }
  const median = (read: (run: (typeof started)[number]) => number | undefined): number =>
    medianOf(started, (run) => read(run) ?? Number.NaN);
  const isEmbedded = started[0]?.startMs !== undefined;
  await using server = await start({ isDurable: false });
  const load = await measureLoad(server);
  return {
    readyMs: median(({ readyMs }) => readyMs),
    idleMb: median(({ idleMb }) => idleMb),
    ...(isEmbedded ? { loadMs: median(({ loadMs }) => loadMs), startMs: median(({ startMs }) => startMs) } : {}),
    load,
    guarded: await measureGuarded(start),
    durable: await measureDurable(start),
  };
}

/** With a user whom a role allows what they do, and a webhook that is asked about every write. */
async function measureGuarded(start: Start): Promise<WriteFigures> {
  await using server = await start({ isDurable: false });
  await using hook = await startWebhookServer(() => ({ response: { allowed: true } }));
  const admin = createLoadClient(server.connection, 1);
  try {
    await installRole(admin, USER);
    await createNamespace(admin, "probe");
    await installWebhook(admin, hook);
    // A real server learns of a webhook a moment later.
    let probes = 0;
    await waitFor("the webhook is asked", async () => {
      await createConfigMap(admin, "probe", probes++);
      return hook.requests.length > 0;
    });
  } finally {
    admin.close();
  }
  return await measureWrites(server.connection, {
    "impersonate-user": USER,
    "impersonate-group": "system:authenticated",
  });
}

async function measureDurable(start: Start): Promise<WriteFigures> {
  await using server = await start({ isDurable: true });
  return await measureWrites(server.connection);
}

function measurementsOf(ours: ServerFigures, peer: ServerFigures | undefined): Measurement[] {
  type Row = [name: string, unit: string, read: (figures: ServerFigures) => number | undefined, Measurement["better"]];
  const rows: Row[] = [
    ["ready in a process that runs", "ms", ({ startMs }) => startMs, "lower"],
    ["loading its modules before that", "ms", ({ loadMs }) => loadMs, "lower"],
    ["ready as a process", "ms", ({ readyMs }) => readyMs, "lower"],
    ["idle memory", "MB", ({ idleMb }) => idleMb, "lower"],
    ["create ConfigMap, the first 2,000", "1/s", ({ load }) => load.firstCreatesPerSecond, "higher"],
    ["apply Deployment, the first 500", "1/s", ({ load }) => load.firstAppliesPerSecond, "higher"],
    ["create ConfigMap", "1/s", ({ load }) => load.createsPerSecond, "higher"],
    ["apply Deployment", "1/s", ({ load }) => load.appliesPerSecond, "higher"],
    ["create, with RBAC and a webhook", "1/s", ({ guarded }) => guarded.createsPerSecond, "higher"],
    ["apply, with RBAC and a webhook", "1/s", ({ guarded }) => guarded.appliesPerSecond, "higher"],
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
