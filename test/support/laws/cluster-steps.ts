// Helpers for the invariants of the controllers of a cluster, as far as an operator observes them. The same invariants hold for
// kube-controller-manager and for our simulation, on a real API server and on the embedded one.
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../api/api-request.js";
import { waitFor } from "#apiserver/wait-for.js";

/** The timeout of an expected change; deleting a namespace takes a real cluster several seconds. */
export const PATIENCE = { timeoutMs: 40_000 };
/** The options of tests with such a timeout. */
export const TEST_OPTIONS = { timeoutMs: 60_000 };
/** How long tests wait to check that something does not happen. */
export const RESTRAINT_MS = 700;

/** A condition of a namespace or a workload. */
export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

let namespaces = 0;

/** Creates a namespace for a test, and returns its name. */
export async function createNamespace(cluster: Connection): Promise<string> {
  const name = `simulation-${++namespaces}`;
  await apiRequestOrThrow(cluster, "POST /api/v1/namespaces", { body: { metadata: { name } } });
  return name;
}

/** The options of a ConfigMap of a test. */
export interface ConfigMapOptions {
  owners?: ApiObject[];
  blocks?: boolean;
  finalizers?: string[];
}

export function createConfigMap(
  cluster: Connection,
  ...[namespace, name, { owners = [], blocks = false, finalizers = [] } = {}]: [string, string, ConfigMapOptions?]
): Promise<ApiObject> {
  const ownerReferences = owners.map((owner) => ownerReference(owner, blocks));
  return apiRequestOrThrow(cluster, `POST /api/v1/namespaces/${namespace}/configmaps`, {
    body: { metadata: { name, ownerReferences, finalizers } },
  });
}

/** Returns an owner reference. */
export function ownerReference({ apiVersion, kind, metadata }: ApiObject, blockOwnerDeletion = false): object {
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, blockOwnerDeletion };
}

export function pathOf(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps/${name}`;
}

/** Returns the ConfigMap; undefined if it does not exist. */
export async function find(cluster: Connection, namespace: string, name: string): Promise<ApiObject | undefined> {
  const { status, body } = await apiRequest(cluster, `GET ${pathOf(namespace, name)}`);
  return status === 200 ? body : undefined;
}

/** Returns the names of the owners of a ConfigMap. */
export async function ownersOf(cluster: Connection, namespace: string, name: string): Promise<string[]> {
  const { metadata } = await apiRequestOrThrow(cluster, `GET ${pathOf(namespace, name)}`);
  return (metadata.ownerReferences ?? []).map((owner) => owner.name);
}

/** Deletes a ConfigMap with a propagation policy. */
export async function remove(cluster: Connection, { metadata }: ApiObject, propagationPolicy: string): Promise<void> {
  await apiRequestOrThrow(cluster, `DELETE ${pathOf(metadata.namespace ?? "", metadata.name)}`, {
    body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy },
  });
}

/** Removes the finalizer of the test, but not those of the garbage collector. */
export async function release(cluster: Connection, namespace: string, name: string): Promise<void> {
  const { metadata } = await apiRequestOrThrow(cluster, `GET ${pathOf(namespace, name)}`);
  const finalizers = metadata.finalizers?.filter((finalizer) => finalizer !== "example.com/hold");
  await apiRequestOrThrow(cluster, `PATCH ${pathOf(namespace, name)}`, {
    contentType: "application/merge-patch+json",
    body: { metadata: { finalizers } },
  });
}

/** Waits until a ConfigMap has been deleted. */
export async function isGone(cluster: Connection, namespace: string, name: string): Promise<void> {
  await waitFor(`${name} is gone`, async () => (await find(cluster, namespace, name)) === undefined, PATIENCE);
}

/** Waits until a namespace has been deleted. */
export async function namespaceIsGone(cluster: Connection, namespace: string): Promise<void> {
  await waitFor(
    "the namespace is gone",
    async () => (await apiRequest(cluster, `GET /api/v1/namespaces/${namespace}`)).status === 404,
    PATIENCE,
  );
}
