import { type Connection, createLoadClient, inParallel, type LoadClient } from "../load-client.js";
import { quantile } from "../measurement.js";
import { applyDeployment, createConfigMap, createNamespace, configMapName } from "./load-requests.js";
import type { RunningServer } from "./running-server.js";

/** How many writes a second a server takes, when it has taken many and when it is new. */
export interface WriteFigures {
  createsPerSecond: number;
  appliesPerSecond: number;
  firstCreatesPerSecond: number;
  firstAppliesPerSecond: number;
}

/** What a server does under load. */
export interface LoadFigures extends WriteFigures {
  listMs: number;
  fanOutP50Ms: number;
  fanOutP99Ms: number;
  /** Memory for each object, by the size of its JSON. */
  bytesPerByte: number;
}

// BENCH_SHARE=0.1 tries everything out with a tenth of the load.
const SHARE = Number(process.env["BENCH_SHARE"] ?? 1);
const CLIENTS = 10;
// What is compiled while it runs gets faster until then.
const WARM_UP_CREATES = 10_000 * SHARE;
const WARM_UP_APPLIES = 4_000 * SHARE;
const FIRST_CREATES = 2_000 * SHARE;
const FIRST_APPLIES = 500 * SHARE;
const OBJECTS = 10_000 * SHARE;
const CREATES = 10_000 * SHARE;
const APPLIED_OBJECTS = 200 * SHARE;
const APPLIES = 4_000 * SHARE;
const WATCHERS = 1_000 * SHARE;
const WATCHED_WRITES = 30;

/** Measures one server, after a warm-up. */
export async function measureLoad(server: RunningServer): Promise<LoadFigures> {
  const client = createLoadClient(server.connection, CLIENTS);
  try {
    for (const namespace of ["objects", "watches"]) await createNamespace(client, namespace);
    const writes = await measureWrites(server.connection);
    const before = await server.usedBytes();
    await inParallel(OBJECTS, CLIENTS, (index) => createConfigMap(client, "objects", index));
    const bytes = (await server.usedBytes()) - before;
    const { listMs, length } = await measureList(client);
    const latencies = await measureFanOut(client);
    return {
      ...writes,
      listMs,
      fanOutP50Ms: quantile(latencies, 0.5),
      fanOutP99Ms: quantile(latencies, 0.99),
      bytesPerByte: bytes / length,
    };
  } finally {
    client.close();
  }
}

/** Measures the writes of a new server alone; `headers` say who writes. */
export async function measureWrites(
  connection: Connection,
  headers: Record<string, string> = {},
): Promise<WriteFigures> {
  const admin = createLoadClient(connection, 1);
  const client = createLoadClient(connection, CLIENTS, headers);
  try {
    for (const namespace of ["first", "warm-up", "creates", "applies"]) await createNamespace(admin, namespace);
    const create = (namespace: string) => (index: number) => createConfigMap(client, namespace, index);
    const apply = (namespace: string) => (index: number) =>
      applyDeployment(client, namespace, { index, of: APPLIED_OBJECTS });
    const firstCreatesPerSecond = await rateOf(FIRST_CREATES, create("first"));
    const firstAppliesPerSecond = await rateOf(FIRST_APPLIES, apply("first"));
    await inParallel(WARM_UP_CREATES, CLIENTS, create("warm-up"));
    await inParallel(WARM_UP_APPLIES, CLIENTS, apply("warm-up"));
    const createsPerSecond = await rateOf(CREATES, create("creates"));
    const appliesPerSecond = await rateOf(APPLIES, apply("applies"));
    return { createsPerSecond, appliesPerSecond, firstCreatesPerSecond, firstAppliesPerSecond };
  } finally {
    admin.close();
    client.close();
  }
}

async function rateOf(count: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await inParallel(count, CLIENTS, work);
  return count / ((performance.now() - startedAt) / 1000);
}

async function measureList(client: LoadClient): Promise<{ listMs: number; length: number }> {
  const samples: number[] = [];
  let length = 0;
  for (let round = 0; round < 5; round++) {
    const startedAt = performance.now();
    const text = await client.send({ method: "GET", path: "/api/v1/namespaces/objects/configmaps" });
    samples.push(performance.now() - startedAt);
    length = text.length;
  }
  return { listMs: quantile(samples, 0.5), length };
}

/** The times from the start of a write until each watcher has its event. */
async function measureFanOut(client: LoadClient): Promise<number[]> {
  const latencies: number[] = [];
  let current = { name: "", at: 0, missing: 0, seen: (): void => undefined };
  const path = "/api/v1/namespaces/watches/configmaps";
  const onLine = (line: string): void => {
    // Parsing for a thousand watchers would take longer than serving them.
    if (!line.includes(`"name":"${current.name}"`)) return;
    latencies.push(performance.now() - current.at);
    if (--current.missing === 0) current.seen();
  };
  const stops: (() => void)[] = [];
  try {
    for (let watcher = 0; watcher < WATCHERS; watcher++) stops.push(await client.watch(`${path}?watch=true`, onLine));
    for (let index = 0; index < WATCHED_WRITES; index++) {
      const isSeen = new Promise<void>((seen) => {
        current = { name: configMapName(index), at: performance.now(), missing: WATCHERS, seen };
      });
      await createConfigMap(client, "watches", index);
      await isSeen;
    }
  } finally {
    for (const stop of stops) stop();
  }
  return latencies;
}
