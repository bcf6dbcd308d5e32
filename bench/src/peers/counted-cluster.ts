// A control plane that tells how many requests others than the driver have made.
import { startControlPlane } from "#test/support/control-plane.js";
import { createLoadClient, type LoadRequest } from "../load-client.js";
import { readUsage } from "./process-usage.js";
import { type BenchObject, childPaths } from "./web-page.js";

/** Requests by verb. */
export type RequestCounts = Map<string, number>;

/** A cluster under measurement. */
export interface CountedCluster extends AsyncDisposable {
  readonly kubeconfig: string;
  /** Sends a request that is not counted. */
  send<T>(request: LoadRequest & { verb: string; resource: string }): Promise<T>;
  list(resource: string, path: string): Promise<BenchObject[]>;
  readCounts(): Promise<RequestCounts>;
  /** Is a watch of WebPages open? */
  isWatched(): Promise<boolean>;
  /** The CPU seconds that kube-apiserver and etcd have used. */
  serverCpuSeconds(): number;
}

const CONNECTIONS = 40;
const RESOURCES = ["webpages", ...Object.keys(childPaths)];

/** Starts a control plane of its own for one operator. */
export async function startCountedCluster(): Promise<CountedCluster> {
  const plane = await startControlPlane();
  const client = createLoadClient(plane, CONNECTIONS);
  const own = new Map<string, number>();
  const readMetrics = () => client.send({ method: "GET", path: "/metrics" });
  const send: CountedCluster["send"] = async <T>({
    verb,
    resource,
    ...request
  }: Parameters<CountedCluster["send"]>[0]) => {
    const key = `${verb} ${resource}`;
    own.set(key, (own.get(key) ?? 0) + 1);
    return JSON.parse(await client.send(request)) as T;
  };
  return {
    kubeconfig: plane.kubeconfig,
    send,
    async list(resource, path) {
      return (await send<{ items: BenchObject[] }>({ verb: "LIST", resource, method: "GET", path })).items;
    },
    async readCounts() {
      const counts: RequestCounts = new Map();
      const add = (verb: string, count: number) => counts.set(verb, (counts.get(verb) ?? 0) + count);
      for (const { labels, value } of samplesOf(await readMetrics(), "apiserver_request_total")) {
        if (RESOURCES.includes(labels["resource"] ?? "")) add(labels["verb"] ?? "", value);
      }
      for (const [key, count] of own) {
        const [verb = "", resource = ""] = key.split(" ");
        if (RESOURCES.includes(resource)) add(verb, -count);
      }
      return counts;
    },
    async isWatched() {
      // The counters know a watch only when it has ended; this gauge knows the open ones.
      return samplesOf(await readMetrics(), "apiserver_longrunning_requests").some(
        ({ labels, value }) => labels["resource"] === "webpages" && labels["verb"] === "WATCH" && value > 0,
      );
    },
    serverCpuSeconds: () => readUsage(plane.pids.apiserver).cpuSeconds + readUsage(plane.pids.etcd).cpuSeconds,
    async [Symbol.asyncDispose]() {
      client.close();
      await plane.close();
    },
  };
}

interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** The samples of one metric in Prometheus' text format. */
function samplesOf(text: string, metric: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${metric}{`))
    .map((line) => ({
      labels: Object.fromEntries([...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value])),
      value: Number(line.slice(line.lastIndexOf(" "))),
    }));
}
