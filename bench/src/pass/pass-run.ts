// Runs a sample on a real API server until its objects are as desired, and measures reconciles that have nothing to do.
import { setTimeout as sleep } from "node:timers/promises";
import { startSimulation } from "@gen-operator/apiserver/simulate";
import { createLogger, createOperator, type Operator } from "@gen-operator/runtime";
import type { ControllerDefinition, KubernetesObject, ResourceDefinition } from "@gen-operator/runtime/codegen";
import { CONTROLLER_LABEL } from "#runtime/base/primary-link.js";
import { isKubernetes } from "#runtime/workflow/workflow-definition.js";
import { dependentsOf } from "#runtime/reconcile/controller-definition.js";
import { collectionPath } from "#runtime/client/api-client.js";
import { waitFor } from "#apiserver/wait-for.js";
import { type CountedCluster, startCountedCluster } from "../operators/counted-cluster.js";
import { readsOf, subtract, totalOf } from "../operators/request-counts.js";
import type { PassSample, SampleObject } from "./samples.js";

/** The cost of a pass, without the lists and watches that maintain the caches. */
export interface PassCost {
  /** API calls by the counters of the API server. */
  readonly byServer: number;
  /** API calls by the operator's own counter, which excludes watches. */
  readonly byClient: number;
  /** The number of reconciles. Without any, zero API calls would be meaningless. */
  readonly reconciles: number;
  /** Lists, and watches that have ended, by the counters of the API server. */
  readonly reads: number;
}

/** The passes that have nothing to do. */
export interface PassCosts {
  /** All dependents get a label that the desired state does not contain; undefined without dependents. */
  readonly touched?: PassCost;
  /** The operator is stopped, and a new one is started. */
  readonly restarted: PassCost;
  /** The interval until the resync of a primary has elapsed. */
  readonly elapsed: PassCost;
}

const NAMESPACE = "bench";
const INTERVAL_MS = 1_000;
const QUIET_MS = 3_000;
const LIMIT = { timeoutMs: 60_000, intervalMs: 50 };
const NEVER = 0;

/** Measures a sample on a dedicated control plane. */
export async function measurePasses(sample: PassSample): Promise<PassCosts> {
  await using services = await sample.startServices?.();
  const controllers = await sample.load();
  await using cluster = await startCountedCluster(pluralsOf(controllers));
  await using _simulation = await startSimulation(cluster.connection, { except: ["garbage-collection", "namespaces"] });
  await prepare(cluster, { ...sample, objects: [...(services?.objects ?? []), ...sample.objects] });
  const children = childKindsOf(controllers);
  let touched: PassCost | undefined;
  {
    await using session = await startSession(cluster, controllers, NEVER);
    await waitFor(
      `${sample.children} dependents of ${sample.name}`,
      async () => (await listChildren(cluster, children)).length === sample.children,
      LIMIT,
    );
    await cluster.quiet(QUIET_MS);
    if (sample.children > 0)
      touched = await measurePass(session, async () => {
        for (const path of await listChildren(cluster, children)) await label(cluster, path);
      });
  }
  return { ...(touched === undefined ? {} : { touched }), ...(await measureAgain(cluster, controllers)) };
}

/** Starts the operator again with the existing objects. */
async function measureAgain(
  cluster: CountedCluster,
  controllers: readonly ControllerDefinition[],
): Promise<Pick<PassCosts, "restarted" | "elapsed">> {
  const before = await cluster.readCounts();
  await using session = await startSession(cluster, controllers, INTERVAL_MS);
  await waitFor("a reconcile after the start", () => session.counts().reconciles > 0, LIMIT);
  await cluster.quiet(QUIET_MS);
  const requests = subtract(await cluster.readCounts(), before);
  const reads = readsOf(requests);
  const { reconciles, calls } = session.counts();
  const restarted = { byServer: totalOf(requests) - reads, byClient: calls, reconciles, reads };
  return { restarted, elapsed: await measurePass(session, () => sleep(2 * INTERVAL_MS)) };
}

/** A running operator that counts its reconciles and API calls. */
interface Session extends AsyncDisposable {
  readonly cluster: CountedCluster;
  counts(): { readonly reconciles: number; readonly calls: number };
}

async function startSession(
  cluster: CountedCluster,
  controllers: readonly ControllerDefinition[],
  maxReconciliationIntervalMs: number,
): Promise<Session> {
  let reconciles = 0;
  let calls = 0;
  const failures: unknown[] = [];
  const operator: Operator = createOperator({
    controllers: controllers.map((each) => ({ ...each, maxReconciliationIntervalMs })),
    connection: cluster.connection,
    logger: createLogger("warn"),
    observer: ({ error }) => {
      reconciles++;
      if (error !== undefined) failures.push(error);
    },
    onRequest: ({ method, path }) => {
      if (!isList(method, path, controllers)) calls++;
    },
  });
  await operator.start();
  return {
    cluster,
    counts: () => ({ reconciles, calls }),
    async [Symbol.asyncDispose]() {
      await operator.stop();
    },
  };
}

// Runs `act`, and measures until there are no more reconciles and requests.
async function measurePass({ cluster, counts }: Session, act: () => Promise<void>): Promise<PassCost> {
  const before = { ...counts(), requests: await cluster.readCounts() };
  await act();
  await waitFor("a reconcile", () => counts().reconciles > before.reconciles, LIMIT);
  await cluster.quiet(QUIET_MS);
  const requests = subtract(await cluster.readCounts(), before.requests);
  const { reconciles, calls } = counts();
  const reads = readsOf(requests);
  return {
    byServer: totalOf(requests) - reads,
    byClient: calls - before.calls,
    reconciles: reconciles - before.reconciles,
    reads,
  };
}

async function prepare(cluster: CountedCluster, { crds, objects }: PassSample): Promise<void> {
  for (const crd of crds)
    await cluster.create("customresourcedefinitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
  await cluster.create("namespaces", "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  for (const object of objects) {
    const own = placed(object);
    const { path, resource } = await servedPath(cluster, own);
    await cluster.create(resource, path, own);
  }
}

function placed(object: SampleObject): SampleObject {
  const { metadata } = object;
  return metadata.namespace === "default" ? { ...object, metadata: { ...metadata, namespace: NAMESPACE } } : object;
}

interface Discovered {
  readonly resources: readonly { readonly kind: string; readonly name: string; readonly namespaced: boolean }[];
}

// The resource of a CRD is available only a moment after its creation.
async function servedPath(cluster: CountedCluster, { apiVersion, kind, metadata }: SampleObject) {
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const found = await waitFor(`${kind} of ${apiVersion} is served`, async () => {
    const answer = await cluster
      .send<Discovered>({ verb: "GET", resource: "discovery", method: "GET", path: root })
      .catch(() => ({ resources: [] }));
    return answer.resources.find((each) => each.kind === kind && !each.name.includes("/"));
  });
  const { name, namespaced } = found;
  return { resource: name, path: `${root}/${namespaced ? `namespaces/${metadata.namespace}/` : ""}${name}` };
}

function childKindsOf(controllers: readonly ControllerDefinition[]): ResourceDefinition[] {
  const kinds = controllers.flatMap((each) => dependentsOf(each).filter(isKubernetes));
  return [...new Map(kinds.map(({ resource }) => [collectionPath(resource), resource])).values()];
}

function pluralsOf(controllers: readonly ControllerDefinition[]): string[] {
  const primaries = controllers.map(({ workflow }) => workflow.primary);
  return [...new Set([...primaries, ...childKindsOf(controllers)].map(({ plural }) => plural))];
}

/** Lists the objects of the operator by their label, with the path of each. */
async function listChildren(
  cluster: CountedCluster,
  kinds: readonly ResourceDefinition[],
): Promise<{ resource: string; path: string }[]> {
  const found = await Promise.all(
    kinds.map(async (definition) => {
      const path = collectionPath(definition, NAMESPACE);
      const query = `?labelSelector=${encodeURIComponent(CONTROLLER_LABEL)}`;
      const items = await cluster.list<KubernetesObject>(definition.plural, path + query);
      return items.map(({ metadata }) => ({ resource: definition.plural, path: `${path}/${metadata.name}` }));
    }),
  );
  return found.flat();
}

// An annotation would suffice for most kinds, but changes the generation of a Deployment.
function label(cluster: CountedCluster, { resource, path }: { resource: string; path: string }): Promise<unknown> {
  return cluster.send({
    verb: "PATCH",
    resource,
    method: "PATCH",
    path,
    contentType: "application/merge-patch+json",
    body: JSON.stringify({ metadata: { labels: { "bench.example.com/touched": "yes" } } }),
  });
}

// A list request has the path of a collection, in one or all namespaces.
function isList(method: string, path: string, controllers: readonly ControllerDefinition[]): boolean {
  const plurals = pluralsOf(controllers);
  return method === "GET" && plurals.includes(path.split("?", 1)[0]!.split("/").at(-1)!);
}
