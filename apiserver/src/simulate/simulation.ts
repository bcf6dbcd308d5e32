// What a cluster does beside its API server, as far as an operator notices: garbage collection, the end of namespaces, workloads
// that become ready. Separate controllers over HTTP, so they run beside the embedded server and beside a real one.
import { setMaxListeners } from "node:events";
import { type ApiClient, type Connection, createApiClient } from "./feed/api-client.js";
import { type ClusterFeedOptions, startClusterFeed } from "./feed/cluster-feed.js";
import { createGarbageCollection } from "./garbage/garbage-collection.js";
import { createNamespaceDeletion } from "./namespaces/namespace-deletion.js";
import { startWorkloads } from "./workloads/workloads.js";

/** A controller that can be simulated. */
export type SimulatedController = "garbage-collection" | "namespaces" | "workloads";

/** Which controllers run, and how. */
export interface SimulationOptions {
  /** All of them unless named here. */
  only?: SimulatedController[];
  /** The time from a change of a workload's spec until its pods are ready; 200 unless given. */
  delayMs?: number;
  /** Learns of attempts that failed and will be made again; conflicts are part of normal work. */
  onError?: (error: unknown, key: string) => void;
}

/** Controllers that run until they are closed. */
export interface Simulation extends AsyncDisposable {
  close(): Promise<void>;
}

const DEFAULT_DELAY_MS = 200;

/** Starts the controllers; resolves once they have seen all that exists. */
export async function startSimulation(connection: Connection, options: SimulationOptions = {}): Promise<Simulation> {
  const { only, delayMs = DEFAULT_DELAY_MS, onError = () => {} } = options;
  const isWanted = (name: SimulatedController) => only === undefined || only.includes(name);
  const client = createApiClient(connection);
  const stop = new AbortController();
  const { signal } = stop;
  // Every watch listens to it.
  setMaxListeners(0, signal);
  const clusterControllers = [
    ...(isWanted("garbage-collection") ? [createGarbageCollection(client, onError)] : []),
    ...(isWanted("namespaces") ? [createNamespaceDeletion(client, onError)] : []),
  ];
  const close = async () => {
    stop.abort();
    for (const controller of clusterControllers) controller.close();
    client.close();
  };
  try {
    await Promise.all([
      startCluster(client, { listeners: clusterControllers, signal, onError }),
      isWanted("workloads") ? startWorkloads(client, { delayMs, signal, onError }) : undefined,
    ]);
  } catch (error) {
    await close();
    throw error;
  }
  return { close, [Symbol.asyncDispose]: close };
}

type ClusterController = ReturnType<typeof createGarbageCollection> | ReturnType<typeof createNamespaceDeletion>;

async function startCluster(
  client: ApiClient,
  { listeners, ...options }: Omit<ClusterFeedOptions, "listeners"> & { listeners: ClusterController[] },
): Promise<void> {
  if (listeners.length === 0) return;
  const feed = await startClusterFeed(client, { listeners, ...options });
  for (const listener of listeners) listener.start(feed);
}
