import type { ApiClient, ResourceDefinition } from "@gen-operator/runtime";
import type * as runtime from "@gen-operator/runtime";

/** Which cluster is asked, and as whom. */
export interface ClusterOptions {
  /** Default: what kubectl would use. */
  readonly kubeconfig?: string;
  /** Default: the current context of the kubeconfig. */
  readonly context?: string;
  /** The user to impersonate, as with kubectl's `--as`. Default: the user of the kubeconfig. */
  readonly user?: string;
}

// Somebody waits at a terminal: a server that is away is reported and not waited for.
const MAX_ATTEMPTS = 2;

/**
 * Opens a client of a cluster; throws an Error that says why there is none.
 *
 * `library` is the runtime to connect with. Default: that of the generator.
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

/** What went wrong with a cluster, and what to do about it; each is one line. */
export interface ClusterProblem {
  readonly message: string;
  readonly advice: string;
}

/** Describes why a cluster could not be read. `forbidden` is the advice for a user who may not do that. */
export async function describeClusterProblem(
  error: unknown,
  { client, forbidden }: { readonly client: ApiClient; readonly forbidden: string },
): Promise<ClusterProblem> {
  const { isApiError, messageOf } = await import("@gen-operator/runtime");
  const { server, origin } = client.connection;
  const { name = "" } = error as Error;
  const message = messageOf(error).replace(/\s+/g, " ");
  // What the client says of an answer from elsewhere, what parses it, and what looks for its parts tell nothing that helps.
  const isForeign =
    name === "ConnectionError" && message.includes("a proxy or load balancer in front of the API server");
  if (isForeign || /^(?:Syntax|Type)Error$/.test(name))
    return { message: `${server} (${origin}) does not answer as an API server`, advice: ELSEWHERE };
  if (isApiError(error) && error.code < 400) return { message, advice: ELSEWHERE };
  if (isApiError(error, 401))
    return { message, advice: "log in again: the credentials of the kubeconfig are not accepted" };
  if (isApiError(error, 403)) return { message, advice: forbidden };
  if (name === "TimeoutError") return { message: `${server} (${origin}) does not answer in time`, advice: REACHABLE };
  return { message, advice: REACHABLE };
}

const ELSEWHERE = "check the address: a proxy or a page to sign in may answer in its place";
const REACHABLE = "check that the cluster runs and can be reached from here: kubectl cluster-info";

/** The kind of CustomResourceDefinitions. */
export const CUSTOM_RESOURCE_DEFINITION = clusterKind(
  "apiextensions.k8s.io",
  "CustomResourceDefinition",
  "customresourcedefinitions",
);

/** Returns the path of a CustomResourceDefinition. What is read there as text has the very integers, which an object of the client has not. */
export function pathOfCrd(name: string): string {
  return `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${encodeURIComponent(name)}`;
}

/** Returns the definition of a built-in kind that has no namespace, in version v1. */
export function clusterKind(group: string, kind: string, plural: string): ResourceDefinition {
  const names = { group, version: "v1", apiVersion: `${group}/v1`, kind, plural };
  return { ...names, scope: "Cluster", hasStatusSubresource: true, isCustom: false, schema: {} };
}
