// A control plane that counts the requests of all clients except the benchmark driver.
import { waitFor } from "#apiserver/wait-for.js";
import { startControlPlane } from "#test/support/machine/control-plane.js";
import { type Connection, createLoadClient, type LoadClient, type LoadRequest } from "../load-client.js";
import { readUsage } from "./process-usage.js";
import { type RequestCounts, subtract, sumCounts, totalOf } from "./request-counts.js";
import { samplesOf } from "./server-metrics.js";

/** A request of the driver, which is not counted. */
export type OwnRequest = LoadRequest & { verb: string; resource: string };

/** A control plane with the ids of its processes, for measurements. */
export interface MeasuredPlane extends Connection {
  readonly kubeconfig: string;
  readonly pids: { readonly [program: string]: number };
  close(): Promise<void>;
}

/** A control plane that counts requests. */
export interface CountedCluster extends AsyncDisposable {
  readonly connection: Connection;
  readonly kubeconfig: string;
  /** Sends a request that is not counted. */
  send<T>(request: OwnRequest): Promise<T>;
  /** Creates an object with a request that is not counted. */
  create(resource: string, path: string, body: object): Promise<void>;
  list<T>(resource: string, path: string): Promise<T[]>;
  /** Watches a collection, as LoadClient does. The API server counts a watch when it ends. */
  watch: LoadClient["watch"];
  /** Returns the counted requests by verb. */
  readCounts(): Promise<RequestCounts>;
  /** Resolves once no request has been received for this time. */
  quiet(ms: number): Promise<void>;
  /** Returns the number of open watches of a resource by all clients. */
  openWatches(resource: string): Promise<number>;
  /** Returns the CPU time of the processes of the control plane, in seconds. */
  serverCpuSeconds(): number;
}

const CONNECTIONS = 40;
const QUIET_CHECK_MS = 500;

/** Starts a control plane for one operator, and counts requests for the given resources (plural names). */
export async function startCountedCluster(
  resources: readonly string[],
  start: () => Promise<MeasuredPlane> = startControlPlane,
): Promise<CountedCluster> {
  const plane = await start();
  const client = createLoadClient(plane, CONNECTIONS);
  const own: { verb: string; resource: string }[] = [];
  const readMetrics = () => client.send({ method: "GET", path: "/metrics" });
  const send: CountedCluster["send"] = async <T>({ verb, resource, ...request }: OwnRequest) => {
    if (resources.includes(resource)) own.push({ verb, resource });
    return JSON.parse(await client.send(request)) as T;
  };
  const readCounts = async () => {
    const samples = samplesOf(await readMetrics(), "apiserver_request_total");
    const all = samples
      .filter(({ labels }) => resources.includes(labels["resource"] ?? ""))
      .map(({ labels, value }) => [labels["verb"] ?? "", value] as const);
    return subtract(sumCounts(all), sumCounts(own.map(({ verb }) => [verb, 1])));
  };
  return {
    connection: plane,
    kubeconfig: plane.kubeconfig,
    send,
    async create(resource, path, body) {
      await send({ verb: "POST", resource, method: "POST", path, body: JSON.stringify(body) });
    },
    async list<T>(resource: string, path: string) {
      return (await send<{ items: T[] }>({ verb: "LIST", resource, method: "GET", path })).items;
    },
    watch: (path, onLine, onEnd) => client.watch(path, onLine, onEnd),
    readCounts,
    async quiet(ms) {
      let last = totalOf(await readCounts());
      let since = performance.now();
      await waitFor(
        "no more requests",
        async () => {
          const now = totalOf(await readCounts());
          if (now !== last) since = performance.now();
          last = now;
          return performance.now() - since >= ms;
        },
        { timeoutMs: 180_000, intervalMs: QUIET_CHECK_MS },
      );
    },
    async openWatches(resource) {
      // The request counters include only watches that have ended; this gauge counts open ones.
      return samplesOf(await readMetrics(), "apiserver_longrunning_requests")
        .filter(({ labels }) => labels["resource"] === resource && labels["verb"] === "WATCH")
        .reduce((sum, { value }) => sum + value, 0);
    },
    serverCpuSeconds: () => Object.values(plane.pids).reduce((seconds, pid) => seconds + readUsage(pid).cpuSeconds, 0),
    async [Symbol.asyncDispose]() {
      client.close();
      await plane.close();
    },
  };
}
