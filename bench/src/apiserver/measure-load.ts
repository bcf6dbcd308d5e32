import { type Connection, createLoadClient, inParallel, type LoadClient } from "../load-client.js";
import { quantile } from "../measurement.js";

/** What a server does under load. */
export interface LoadFigures {
  createsPerSecond: number;
  appliesPerSecond: number;
  listMs: number;
  fanOutP50Ms: number;
  fanOutP99Ms: number;
}

const CONCURRENCY = 16;
const WARM_UP = 200;
const OBJECTS = 2_000;
const APPLIED_OBJECTS = 200;
const APPLIES = 1_000;
const WATCHERS = 10;
const WATCHED_WRITES = 300;

/** Measures one server, after a warm-up. */
export async function measureLoad(connection: Connection): Promise<LoadFigures> {
  const client = createLoadClient(connection, CONCURRENCY);
  try {
    for (const namespace of ["warm-up", "creates", "applies", "watches"]) await createNamespace(client, namespace);
    await inParallel(WARM_UP, CONCURRENCY, (index) => createConfigMap(client, "warm-up", index));
    const createsPerSecond = await rateOf(OBJECTS, (index) => createConfigMap(client, "creates", index));
    const listMs = await measureList(client);
    const appliesPerSecond = await rateOf(APPLIES, (index) => applyDeployment(client, index));
    const latencies = await measureFanOut(client);
    return {
      createsPerSecond,
      appliesPerSecond,
      listMs,
      fanOutP50Ms: quantile(latencies, 0.5),
      fanOutP99Ms: quantile(latencies, 0.99),
    };
  } finally {
    client.close();
  }
}

async function rateOf(count: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await inParallel(count, CONCURRENCY, work);
  return count / ((performance.now() - startedAt) / 1000);
}

async function measureList(client: LoadClient): Promise<number> {
  const samples: number[] = [];
  for (let round = 0; round < 5; round++) {
    const startedAt = performance.now();
    await client.send({ method: "GET", path: "/api/v1/namespaces/creates/configmaps" });
    samples.push(performance.now() - startedAt);
  }
  return quantile(samples, 0.5);
}

/** The times from the start of a write until each watcher has its event. */
async function measureFanOut(client: LoadClient): Promise<number[]> {
  const latencies: number[] = [];
  const written = new Map<string, { at: number; missing: number; seen: () => void }>();
  const path = "/api/v1/namespaces/watches/configmaps";
  const onLine = (line: string): void => {
    const name = (JSON.parse(line) as { object: { metadata: { name?: string } } }).object.metadata.name;
    const write = name === undefined ? undefined : written.get(name);
    if (write === undefined) return;
    latencies.push(performance.now() - write.at);
    if (--write.missing === 0) write.seen();
  };
  const stops = await Promise.all(Array.from({ length: WATCHERS }, () => client.watch(`${path}?watch=true`, onLine)));
  try {
    for (let index = 0; index < WATCHED_WRITES; index++) {
      const isSeen = new Promise<void>((seen) =>
        written.set(nameOf(index), { at: performance.now(), missing: WATCHERS, seen }),
      );
      await createConfigMap(client, "watches", index);
      await isSeen;
    }
  } finally {
    for (const stop of stops) stop();
  }
  return latencies;
}

function nameOf(index: number): string {
  return `object-${String(index).padStart(5, "0")}`;
}

function createNamespace(client: LoadClient, name: string): Promise<string> {
  return client.send({ method: "POST", path: "/api/v1/namespaces", body: JSON.stringify({ metadata: { name } }) });
}

function createConfigMap(client: LoadClient, namespace: string, index: number): Promise<string> {
  const body = JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: nameOf(index), labels: { app: "bench" } },
    data: { "index.html": "<h1>hello</h1>".repeat(20) },
  });
  return client.send({ method: "POST", path: `/api/v1/namespaces/${namespace}/configmaps`, body });
}

/** The first applies create, the later ones change something. */
function applyDeployment(client: LoadClient, index: number): Promise<string> {
  const name = nameOf(index % APPLIED_OBJECTS);
  const round = Math.floor(index / APPLIED_OBJECTS);
  const body = JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, labels: { app: name } },
    spec: {
      replicas: round,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [
            {
              name: "web",
              image: `nginx:1.${round}`,
              ports: [{ containerPort: 80 }],
              resources: { requests: { cpu: "10m", memory: "16Mi" } },
            },
          ],
        },
      },
    },
  });
  const path = `/apis/apps/v1/namespaces/applies/deployments/${name}?fieldManager=bench&force=true`;
  return client.send({ method: "PATCH", path, body, contentType: "application/apply-patch+yaml" });
}
