import { createLoadClient, inParallel, type LoadClient } from "../load-client.js";
import { quantile } from "../measurement.js";
import { createConfigMap, createNamespace, configMapName } from "./load-requests.js";
import { CLIENTS, SHARE, WARM_UP_CREATES } from "./load-size.js";
import type { RunningServer } from "./running-server.js";

/** The figures of a server under load. */
export interface LoadFigures {
  listMs: number;
  fanOutP50Ms: number;
  fanOutP99Ms: number;
  /** The memory that objects use, divided by the size of their JSON. */
  bytesPerByte: number;
}

const OBJECTS = 10_000 * SHARE;
const WATCHERS = 1_000 * SHARE;
const WATCHED_WRITES = 30;

/** Measures a server after a warm-up. */
export async function measureLoad(server: RunningServer): Promise<LoadFigures> {
  const client = createLoadClient(server.connection, CLIENTS);
  try {
    for (const namespace of ["warm-up", "objects", "watches"]) await createNamespace(client, namespace);
    await inParallel(WARM_UP_CREATES, CLIENTS, (index) => createConfigMap(client, "warm-up", index));
    const before = await server.usedBytes();
    await inParallel(OBJECTS, CLIENTS, (index) => createConfigMap(client, "objects", index));
    const bytes = (await server.usedBytes()) - before;
    const { listMs, length } = await measureList(client);
    const latencies = await measureFanOut(client);
    return {
      listMs,
      fanOutP50Ms: quantile(latencies, 0.5),
      fanOutP99Ms: quantile(latencies, 0.99),
      bytesPerByte: bytes / length,
    };
  } finally {
    client.close();
  }
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

/** Measures the time from the start of a write until each watcher receives its event. */
async function measureFanOut(client: LoadClient): Promise<number[]> {
  const latencies: number[] = [];
  let current = { name: "", at: 0, missing: 0, seen: (): void => undefined };
  const path = "/api/v1/namespaces/watches/configmaps";
  const onLine = (line: string): void => {
    // Parsing the events of a thousand watchers would take longer than serving them.
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
