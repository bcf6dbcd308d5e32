import type { ApiClient, KubernetesObject } from "@gen-operator/runtime";
import { type ClusterOptions, clusterKind, describeClusterProblem, openCluster } from "../read/cluster.js";
import { type Check, ok, skipped } from "./check.js";

/** Timeout of requests to the cluster. */
const TIMEOUT_MS = 10_000;
const NAME = "cluster";

/** The cluster, or the failed check that explains why it is not available. */
export interface FoundCluster {
  readonly checks: readonly Check[];
  /** Client of a reachable cluster. The caller closes it. */
  readonly client?: ApiClient;
  /** User name that the API server reports for the credentials. */
  readonly user?: string;
}

/** Connects to the cluster, and reads its version and the user name of the credentials. */
export async function findCluster(options: ClusterOptions): Promise<FoundCluster> {
  const { messageOf } = await import("@gen-operator/runtime");
  let client: ApiClient;
  try {
    client = await openCluster(options);
  } catch (error) {
    const message = messageOf(error);
    // A cluster is not required for developing an operator.
    const isAbsent = options.kubeconfig === undefined && message.startsWith("no cluster to connect to");
    if (isAbsent) return { checks: [skipped(NAME, "kubeconfig not found", "set --kubeconfig FILE")] };
    return { checks: [{ name: NAME, outcome: "failed", message, advice: "correct the kubeconfig" }] };
  }
  const { server, origin } = client.connection;
  try {
    const version = await readVersion(client);
    const user = await readUser(client);
    const as = user === undefined ? "an unknown user" : `user ${JSON.stringify(user)}`;
    const checks = [ok(NAME, `${server} (${origin}) runs Kubernetes ${version}, and authenticates you as ${as}`)];
    return { checks, client, ...(user === undefined ? {} : { user }) };
  } catch (error) {
    await client.close();
    const { user } = options;
    const forbidden =
      user === undefined
        ? "check the credentials of the kubeconfig"
        : `remove --as, or ask for permission to impersonate ${user}`;
    const problem = await describeClusterProblem(error, { client, forbidden });
    return { checks: [{ name: NAME, outcome: "failed", ...problem }] };
  }
}

async function readVersion(client: ApiClient): Promise<string> {
  const text = await client.readPath("/version", { signal: AbortSignal.timeout(TIMEOUT_MS) });
  const { gitVersion } = JSON.parse(text ?? "{}") as { gitVersion?: unknown };
  if (typeof gitVersion !== "string") throw new Error("the response of GET /version has no version");
  return gitVersion;
}

const REVIEW = clusterKind("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews");

interface SelfSubjectReview extends KubernetesObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

// SelfSubjectReview is served since Kubernetes 1.28.
async function readUser(client: ApiClient): Promise<string | undefined> {
  const { isApiError } = await import("@gen-operator/runtime");
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const review: SelfSubjectReview = await client.create(
      { definition: REVIEW },
      { metadata: { name: "" } },
      { signal },
    );
    return review.status?.userInfo?.username;
  } catch (error) {
    if (isApiError(error, 404)) return undefined;
    throw error;
  }
}
