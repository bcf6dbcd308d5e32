import type { ApiClient, ResourceDefinition } from "@gen-operator/runtime";
import type * as runtime from "@gen-operator/runtime";

/** The cluster to connect to, and the user. */
export interface ClusterOptions {
  /** Path of the kubeconfig. Default: that of kubectl */
  readonly kubeconfig?: string;
  /** Context in the kubeconfig. Default: the current one */
  readonly context?: string;
  /** User to impersonate, like `--as` of kubectl. Default: the user of the kubeconfig */
  readonly user?: string;
}

// Interactive commands report an unreachable server early instead of retrying.
const MAX_ATTEMPTS = 2;

/**
 * Opens a client of a cluster. Throws an Error if the connection cannot be configured.
 *
 * `library` is the runtime to connect with. Default: that of the generator
 */
export async function openCluster(
  { kubeconfig, context, user }: ClusterOptions,
  library?: Pick<typeof runtime, "ApiClient" | "loadConnection">,
): Promise<ApiClient> {
  const { ApiClient, loadConnection } = library ?? (await import("@gen-operator/runtime"));
  const stated = {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  };
  const connection = await loadConnection(stated);
  const identity = user === undefined ? {} : { impersonation: { user } };
  return new ApiClient({ ...connection, ...identity }, { maxAttempts: MAX_ATTEMPTS });
}

/** A problem with a cluster and how to fix it, each on one line. */
export interface ClusterProblem {
  readonly message: string;
  readonly advice: string;
}

/** Describes why a cluster could not be read. `forbidden` is the advice if permissions are missing. */
export async function describeClusterProblem(
  error: unknown,
  { client, forbidden }: { readonly client: ApiClient; readonly forbidden: string },
): Promise<ClusterProblem> {
  const { isApiError, messageOf } = await import("@gen-operator/runtime");
  const { server, origin } = client.connection;
  const { name = "" } = error as Error;
  const message = messageOf(error).replace(/\s+/g, " ");
  // The error messages for responses that are not those of an API server do not help.
  const isForeign =
    name === "ConnectionError" && message.includes("a proxy or load balancer in front of the API server");
  if (isForeign || /^(?:Syntax|Type)Error$/.test(name))
    return { message: `the response of ${server} (${origin}) is not from an API server`, advice: ELSEWHERE };
  if (isApiError(error) && error.code < 400) return { message, advice: ELSEWHERE };
  if (isApiError(error, 401))
    return { message, advice: "log in again: the API server rejects the credentials of the kubeconfig" };
  if (isApiError(error, 403)) return { message, advice: forbidden };
  if (name === "TimeoutError") return { message: `${server} (${origin}) does not respond in time`, advice: REACHABLE };
  return { message, advice: REACHABLE };
}

const ELSEWHERE = "check the address: a proxy or a sign-in page may respond in its place";
const REACHABLE = "check that the cluster is running and reachable: kubectl cluster-info";

/** The kind CustomResourceDefinition. */
export const CUSTOM_RESOURCE_DEFINITION = clusterKind(
  "apiextensions.k8s.io",
  "CustomResourceDefinition",
  "customresourcedefinitions",
);

/** Returns the path of a CRD. Reading it as text preserves integers that a parsed object would round. */
export function pathOfCrd(name: string): string {
  return `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${encodeURIComponent(name)}`;
}

/** Returns the definition of a cluster-scoped built-in kind in version v1. */
export function clusterKind(group: string, kind: string, plural: string): ResourceDefinition {
  const names = { group, version: "v1", apiVersion: `${group}/v1`, kind, plural };
  return { ...names, scope: "Cluster", hasStatusSubresource: true, isCustom: false, schema: {} };
}
