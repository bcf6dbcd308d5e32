// What a cluster does beside its API server, as far as an operator notices: garbage collection, the end of namespaces, workloads
// and their Pods, services, volumes. Separate controllers over HTTP, so they run beside the embedded server and beside a real one.
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

/** Which controllers run, and how. */
export interface SimulationOptions {
  /** The controllers that run. Default: all. */
  only?: readonly SimulatedController[];
  /** Controllers that do not run. */
  except?: readonly SimulatedController[];
  /** The time from the start of a Pod until it is ready, in milliseconds. Default: 200 */
  delayMs?: number;
  /** Signs the certificates that are requested and approved: an authority that the server trusts, in PEM. Without it nobody signs. */
  authority?: KeyedCertificate;
  /** The time by which schedules, deadlines and times to live go. Default: the clock of the machine */
  now?: () => Date;
  /** Lets the process end although the controllers run. Default: false */
  unref?: boolean;
  /** Learns of attempts that failed and will be made again; conflicts are part of normal work. */
  onError?: (error: unknown, key: string) => void;
}

/** Controllers that run until they are closed. */
export interface Simulation extends AsyncDisposable {
  /** Looks at all that waits for a time: `now` has made a step. */
  clockChanged(): void;
  close(): Promise<void>;
}

const DEFAULT_DELAY_MS = 200;

/** Starts the controllers; resolves once they have seen all that exists. */
export async function startSimulation(connection: Connection, options: SimulationOptions = {}): Promise<Simulation> {
  const { delayMs = DEFAULT_DELAY_MS, authority, onError = () => {}, now = machineTime, unref = false } = options;
  checkSimulationOptions(options);
  const names = namesOf(options);
  const client = createApiClient(connection, { unref });
  const stop = new AbortController();
  const { signal } = stop;
  // Every watch listens to it.
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
    `there is no simulated controller "${unknown}"; known are ${simulatedControllers.join(", ")}` +
      hintOf(unknown, simulatedControllers),
  );
}

const OPTIONS: Record<keyof SimulationOptions, true> = {
  ...{ only: true, except: true, delayMs: true, authority: true },
  ...{ now: true, unref: true, onError: true },
};

/** Throws an Error for options and names of controllers that do not exist. */
export function checkSimulationOptions(options: SimulationOptions): void {
  checkNames(options, { known: Object.keys(OPTIONS), what: "option of simulate" });
  namesOf(options);
}

type ClusterController = ReturnType<typeof createGarbageCollection> | ReturnType<typeof createNamespaceDeletion>;

/** Starts what looks at all kinds. */
async function startAll(
  client: ApiClient,
  { listeners, ...options }: Omit<ClusterFeedOptions, "listeners"> & { listeners: ClusterController[] },
): Promise<void> {
  if (listeners.length === 0) return;
  const feed = await startClusterFeed(client, { listeners, ...options });
  for (const listener of listeners) listener.start(feed);
}

/** Starts what looks at kinds that it knows. */
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
