// An operator of the sample with resources outside of Kubernetes, in a namespace of a test's own, and the console that has them.
import {
  createLogger,
  keyOf,
  type KubernetesObject,
  type ReconcileEvent,
  type ResourceClass,
} from "@gen-operator/runtime";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { DependentDefinition } from "#runtime/workflow/workflow-definition.js";
import { Console } from "#external/service/console.js";
import { ConfigMap, controllers, Tenant, Zone } from "#external/src/generated/index.js";
import { startTestApiServer, type TestApiServer } from "../../../support/api/api-server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { untilNoObject, untilObject } from "../../../support/runtime/clients.js";
import { startRecordedRun, type RecordedRun } from "../recorded-run.js";

const CRDS = ["tenants", "zones"].map((plural) => `fixtures/samples/external/crds/${plural}.example.com.yaml`);
const Namespace = classOf(builtinDefinition("v1", "Namespace"));

/** Starts an API server that knows the kinds of the sample. */
export const startServer = (): Promise<TestApiServer> => startTestApiServer({ crds: CRDS, tls: true });

/** A test's own part of the world. */
export interface World extends AsyncDisposable {
  readonly namespace: string;
  readonly console: Console;
  readonly client: ApiClient;
  /** Starts an operator for the namespace; the first one is started already. */
  start(): Promise<RecordedRun>;
  readonly run: RecordedRun;
  tenant(name: string, spec?: Partial<Tenant["spec"]>): Promise<Tenant>;
  zone(name: string, spec?: Partial<Zone["spec"]>): Promise<Zone>;
  /** Waits until an object is as wanted. */
  until<R extends KubernetesObject>(
    kind: ResourceClass<R>,
    name: string,
    holds: (object: R) => boolean | undefined,
  ): Promise<R>;
  untilGone(kind: ResourceClass<KubernetesObject>, name: string): Promise<void>;
  /** Waits until the console has this many of a collection. */
  untilCount(collection: string, count: number): Promise<void>;
  /** The values of a field of all resources of a collection, sorted. */
  valuesOf(collection: string, field: string): string[];
  /** The ConfigMap in which the id of an account is kept. */
  stateOf(tenant: string): Promise<ConfigMap | undefined>;
}

// A fault costs a timeout of seconds, and a retry that waits as long.
const PATIENT = { timeoutMs: 30_000 };

let worlds = 0;

/** Opens a namespace with a console and an operator. */
export async function openWorld(server: TestApiServer): Promise<World> {
  const console = await new Console().start();
  process.env["CONSOLE_URL"] = console.url;
  const namespace = `world-${process.pid}-${++worlds}`;
  const runs: RecordedRun[] = [];
  const start = async () => {
    const started = await startRun(server, namespace);
    runs.push(started);
    return started;
  };
  const { url, token, ca } = server;
  const client = new ApiClient(createConnection({ url, token, ca }));
  await client.create(Namespace, { metadata: { name: namespace } });
  const run = await start();
  const meta = (name: string) => ({ name, namespace });
  const ownStates = async () =>
    (await client.list(ConfigMap, { namespace })).filter(({ metadata }) => metadata.name.endsWith("-state"));
  return {
    ...{ namespace, console, client, start, run },
    tenant: (name, spec = {}) =>
      client.create(Tenant, Tenant.create({ metadata: meta(name), spec: { plan: "free", ...spec } })),
    zone: (name, spec = {}) =>
      client.create(Zone, Zone.create({ metadata: meta(name), spec: { domain: `${name}.example.com`, ...spec } })),
    until: (kind, name, holds) => untilObject({ client, kind, ...meta(name), ...PATIENT }, holds),
    untilGone: (kind, name) => untilNoObject({ client, kind, ...meta(name), ...PATIENT }),
    untilCount: async (collection, count) =>
      void (await waitFor(`${count} ${collection}`, () => console.all(collection).size === count, PATIENT)),
    valuesOf: (collection, field) => [...console.all(collection).values()].map((each) => String(each[field])).sort(),
    stateOf: async (tenant) =>
      (await ownStates()).find(({ metadata }) => metadata.ownerReferences?.[0]?.name === tenant),
    async [Symbol.asyncDispose]() {
      await Promise.all(runs.map((each) => each[Symbol.asyncDispose]()));
      await console.stop();
      await Promise.all([Tenant, Zone].map((kind) => forget(client, kind, namespace)));
      await client.close();
    },
  };
}

// The operators of other tests may watch all namespaces, and have a console of their own.
async function forget(client: ApiClient, kind: ResourceClass<KubernetesObject>, namespace: string): Promise<void> {
  for (const { metadata } of await client.list(kind, { namespace })) {
    await client.mergePatch(kind, metadata, { metadata: { finalizers: null } });
    if (metadata.deletionTimestamp === undefined) await client.delete(kind, metadata);
  }
}

// What the console lists is never late, and a test waits for no grace after each start.
const withGrace = (dependent: DependentDefinition): DependentDefinition =>
  "source" in dependent ? { ...dependent, creationGraceMs: 300 } : dependent;

function startRun({ kubeconfig }: TestApiServer, namespace: string): Promise<RecordedRun> {
  return startRecordedRun({
    controllers: controllers.map((controller) => ({
      ...controller,
      workflow: { ...controller.workflow, dependents: controller.workflow.dependents.map(withGrace) },
      namespaces: [namespace],
      // A fault may take longer than any number of retries.
      retry: { initialIntervalMs: 200, maxIntervalMs: 1_000, maxRetries: -1 },
    })),
    kubeconfig,
    logger: createLogger("silent"),
    stopTimeoutMs: 2_000,
  });
}

/** Waits until the operator neither reconciles nor asks the API server for anything. */
export const untilQuiet = (run: RecordedRun): Promise<void> => run.quiet(300);

/** The reconciles of an object, in order. */
export const eventsOf = ({ events }: RecordedRun, { metadata }: KubernetesObject): ReconcileEvent[] =>
  events.filter(({ primary }) => primary === keyOf(metadata));

/** Counts what was created, by collection. */
export function creationsIn({ console }: Pick<World, "console">): { [collection: string]: number } {
  const counts: { [collection: string]: number } = {};
  for (const change of console.changes) {
    const [method, collection = ""] = change.split(" ");
    if (method === "POST") counts[collection] = (counts[collection] ?? 0) + 1;
  }
  return counts;
}
