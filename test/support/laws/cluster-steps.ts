// What an operator notices of a cluster's own controllers: the helpers of the laws beside this file. The same laws hold for
// kube-controller-manager and for our simulation of it, on a real API server and on the embedded one.
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../api/api-request.js";
import { waitFor } from "#apiserver/wait-for.js";

/** How long a law may take to come true; a real namespace takes seconds to go. */
export const PATIENCE = { timeoutMs: 40_000 };
/** For tests that need that patience. */
export const TEST_OPTIONS = { timeoutMs: 60_000 };
/** How long we watch that something does not happen. */
export const RESTRAINT_MS = 700;

/** A condition of a namespace or a workload. */
export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

let namespaces = 0;

/** Creates a namespace of its own for a test; its name. */
export async function createNamespace(cluster: Connection): Promise<string> {
  const name = `simulation-${++namespaces}`;
  await apiRequestOrThrow(cluster, "POST /api/v1/namespaces", { body: { metadata: { name } } });
  return name;
}

/** What a ConfigMap of a test has beside its name. */
export interface ConfigMapOptions {
  owners?: ApiObject[];
  blocks?: boolean;
  finalizers?: string[];
}

/** Creates a ConfigMap, the simplest of all objects. */
export function createConfigMap(
  cluster: Connection,
  ...[namespace, name, { owners = [], blocks = false, finalizers = [] } = {}]: [string, string, ConfigMapOptions?]
): Promise<ApiObject> {
  const ownerReferences = owners.map((owner) => ownerReference(owner, blocks));
  return apiRequestOrThrow(cluster, `POST /api/v1/namespaces/${namespace}/configmaps`, {
    body: { metadata: { name, ownerReferences, finalizers } },
  });
}

/** A reference to an owner. */
export function ownerReference({ apiVersion, kind, metadata }: ApiObject, blockOwnerDeletion = false): object {
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, blockOwnerDeletion };
}

/** The path of a ConfigMap. */
export function pathOf(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps/${name}`;
}

/** The ConfigMap, or undefined when there is none. */
export async function find(cluster: Connection, namespace: string, name: string): Promise<ApiObject | undefined> {
  const { status, body } = await apiRequest(cluster, `GET ${pathOf(namespace, name)}`);
  return status === 200 ? body : undefined;
}

/** The names of a ConfigMap's owners. */
export async function ownersOf(cluster: Connection, namespace: string, name: string): Promise<string[]> {
  const { metadata } = await apiRequestOrThrow(cluster, `GET ${pathOf(namespace, name)}`);
  return (metadata.ownerReferences ?? []).map((owner) => owner.name);
}

/** Deletes a ConfigMap under a propagation policy. */
export async function remove(cluster: Connection, { metadata }: ApiObject, propagationPolicy: string): Promise<void> {
  await apiRequestOrThrow(cluster, `DELETE ${pathOf(metadata.namespace ?? "", metadata.name)}`, {
    body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy },
  });
}

/** Takes away the finalizer of the test, and leaves those of the garbage collector. */
export async function release(cluster: Connection, namespace: string, name: string): Promise<void> {
  const { metadata } = await apiRequestOrThrow(cluster, `GET ${pathOf(namespace, name)}`);
  const finalizers = metadata.finalizers?.filter((finalizer) => finalizer !== "example.com/hold");
  await apiRequestOrThrow(cluster, `PATCH ${pathOf(namespace, name)}`, {
    contentType: "application/merge-patch+json",
    body: { metadata: { finalizers } },
  });
}

/** Waits until a ConfigMap is gone. */
export async function isGone(cluster: Connection, namespace: string, name: string): Promise<void> {
  await waitFor(`${name} is gone`, async () => (await find(cluster, namespace, name)) === undefined, PATIENCE);
}

/** Waits until a namespace is gone. */
export async function namespaceIsGone(cluster: Connection, namespace: string): Promise<void> {
  await waitFor(
    "the namespace is gone",
    async () => (await apiRequest(cluster, `GET /api/v1/namespaces/${namespace}`)).status === 404,
    PATIENCE,
  );
}
