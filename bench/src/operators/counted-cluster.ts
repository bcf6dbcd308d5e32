// A control plane that tells how many requests others than the driver have made.
import { waitFor } from "#apiserver/wait-for.js";
import { startControlPlane } from "#test/support/machine/control-plane.js";
import { type Connection, createLoadClient, type LoadClient, type LoadRequest } from "../load-client.js";
import { readUsage } from "./process-usage.js";
import { type RequestCounts, subtract, sumCounts, totalOf } from "./request-counts.js";
import { samplesOf } from "./server-metrics.js";

/** A request of the driver, which is not counted. */
export type OwnRequest = LoadRequest & { verb: string; resource: string };

/** A control plane whose processes can be measured. */
export interface MeasuredPlane extends Connection {
  readonly kubeconfig: string;
  readonly pids: { readonly [program: string]: number };
  close(): Promise<void>;
}

/** A cluster under measurement. */
export interface CountedCluster extends AsyncDisposable {
  readonly connection: Connection;
  readonly kubeconfig: string;
  /** Sends a request that is not counted. */
  send<T>(request: OwnRequest): Promise<T>;
  /** Creates an object, which is not counted. */
  create(resource: string, path: string, body: object): Promise<void>;
  list<T>(resource: string, path: string): Promise<T[]>;
  /** Follows a collection as the load client does. The API server counts the watch when it ends. */
  watch: LoadClient["watch"];
  /** By verb, of all that is counted. */
  readCounts(): Promise<RequestCounts>;
  /** Resolves when there was no request for so long. */
  quiet(ms: number): Promise<void>;
  /** How many watches of the resource are open, whoever has them. */
  openWatches(resource: string): Promise<number>;
  /** The CPU seconds that the processes of the control plane have used. */
  serverCpuSeconds(): number;
}

const CONNECTIONS = 40;
const QUIET_CHECK_MS = 500;

/** Starts a control plane of its own for one operator, and counts requests for these resources, given by their plurals. */
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
      // The counters know a watch only when it has ended; this gauge knows the open ones.
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
