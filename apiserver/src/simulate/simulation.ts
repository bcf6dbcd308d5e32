// Simulates the cluster around an API server as far as operators observe it: garbage collection, namespace deletion, workloads and their Pods,
// Services, and volumes. The controllers use the HTTP API, so they also work with a real API server.
import { setMaxListeners } from "node:events";
import { machineTime } from "../clock.js";
import { checkNames, hintOf } from "../did-you-mean.js";
import type { KeyedCertificate } from "../x509/authority.js";
import { type SimulatedController, controllersNamed, simulatedControllers } from "./controllers.js";
import { type EventRecorder, createEventRecorder } from "./event-recorder.js";
import { type ApiClient, type Connection, createApiClient } from "./feed/api-client.js";
import { type ClusterFeedOptions, startClusterFeed } from "./feed/cluster-feed.js";
import { startCluster } from "./feed/cluster.js";
import { type ControllerContext, type Controllers, createControllers } from "./feed/controller.js";
import { createGarbageCollection } from "./garbage-collection.js";
import { createNamespaceDeletion } from "./namespace-deletion.js";
import { registerNode } from "./pods/node.js";
import { writeServerEndpoints } from "./services/kubernetes-service.js";
import { createDefaultClass } from "./volumes.js";

/** Options of startSimulation. */
export interface SimulationOptions {
  /** Controllers to run. Default: all */
  only?: readonly SimulatedController[];
  /** Controllers not to run. */
  except?: readonly SimulatedController[];
  /** Milliseconds from the start of a Pod until it is ready. Default: 200 */
  delayMs?: number;
  /** CA that signs approved CertificateSigningRequests, in PEM; the server must trust it. Without it, no certificates are signed. */
  authority?: KeyedCertificate;
  /** Clock for schedules, deadlines, and TTLs. Default: the system clock */
  now?: () => Date;
  /** Does not keep the process alive. Default: false */
  unref?: boolean;
  /** Called for failed attempts, which are retried; not called for conflicts. */
  onError?: (error: unknown, key: string) => void;
}

/** Running controllers. */
export interface Simulation extends AsyncDisposable {
  /** Requeues everything that waits for a time, after `now` has jumped. */
  clockChanged(): void;
  close(): Promise<void>;
}

const DEFAULT_DELAY_MS = 200;

/** Starts the controllers; resolves once their caches are synced. */
export async function startSimulation(connection: Connection, options: SimulationOptions = {}): Promise<Simulation> {
  const { delayMs = DEFAULT_DELAY_MS, authority, onError = () => {}, now = machineTime, unref = false } = options;
  checkSimulationOptions(options);
  const names = namesOf(options);
  const client = createApiClient(connection, { unref });
  const stop = new AbortController();
  const { signal } = stop;
  // Every watch adds an abort listener, so disable the warning about too many listeners.
  setMaxListeners(0, signal);
  const recorder = names.includes("events") ? createEventRecorder(client, { signal, now }) : undefined;
  const clusterControllers = [
    ...(names.includes("garbage-collection") ? [createGarbageCollection(client, { onError, recorder })] : []),
    ...(names.includes("namespaces") ? [createNamespaceDeletion(client, { onError, now })] : []),
  ];
  const controllers = createControllers(controllersNamed(names), onError);
  const close = async () => {
    stop.abort();
    for (const controller of [...clusterControllers, controllers]) controller.close();
    client.close();
  };
  try {
    await Promise.all([
      startAll(client, { listeners: clusterControllers, signal, onError }),
      startKinds(client, { controllers, names, connection, delayMs, authority, recorder, now, signal, onError }),
    ]);
  } catch (error) {
    await close();
    throw error;
  }
  return { close, clockChanged: () => controllers.wake(), [Symbol.asyncDispose]: close };
}

function namesOf({ only = simulatedControllers, except = [] }: SimulationOptions): SimulatedController[] {
  const unknown = [...only, ...except].find((name) => !simulatedControllers.includes(name));
  if (unknown === undefined) return only.filter((name) => !except.includes(name));
  throw new Error(
    `unknown simulated controller "${unknown}": must be one of ${simulatedControllers.join(", ")}` +
      hintOf(unknown, simulatedControllers),
  );
}

const OPTIONS: Record<keyof SimulationOptions, true> = {
  ...{ only: true, except: true, delayMs: true, authority: true },
  ...{ now: true, unref: true, onError: true },
};

/** Throws an Error for unknown options or controller names. */
export function checkSimulationOptions(options: SimulationOptions): void {
  checkNames(options, { known: Object.keys(OPTIONS), what: "simulate option" });
  namesOf(options);
}

type ClusterController = ReturnType<typeof createGarbageCollection> | ReturnType<typeof createNamespaceDeletion>;

/** Starts the controllers that watch all kinds. */
async function startAll(
  client: ApiClient,
  { listeners, ...options }: Omit<ClusterFeedOptions, "listeners"> & { listeners: ClusterController[] },
): Promise<void> {
  if (listeners.length === 0) return;
  const feed = await startClusterFeed(client, { listeners, ...options });
  for (const listener of listeners) listener.start(feed);
}

/** Starts the controllers that watch a fixed set of kinds. */
async function startKinds(
  client: ApiClient,
  options: {
    controllers: Controllers;
    names: SimulatedController[];
    connection: Connection;
    delayMs: number;
    authority: KeyedCertificate | undefined;
    recorder: EventRecorder | undefined;
    now: () => Date;
    signal: AbortSignal;
    onError: (error: unknown, key: string) => void;
  },
): Promise<void> {
  const { controllers, names, connection, delayMs, authority, recorder, now, signal, onError } = options;
  const { kinds, changed } = controllers;
  const cluster = await startCluster(client, { kinds, changed, recorder, signal, onError });
  const context: ControllerContext = { cluster, client, delayMs, ca: connection.ca, authority, now };
  if (names.includes("pods")) await registerNode(cluster, context.now());
  if (names.includes("endpoints")) await writeServerEndpoints(cluster, connection.url);
  if (names.includes("volumes")) await createDefaultClass(context);
  controllers.start(context);
}
