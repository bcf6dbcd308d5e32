import type { ApiClient, KubernetesObject } from "@gen-operator/runtime";
import { type ClusterOptions, clusterKind, describeClusterProblem, openCluster } from "../read/cluster.js";
import { type Check, ok, skipped } from "./check.js";

/** How long a cluster may take to answer. */
const TIMEOUT_MS = 10_000;
const NAME = "cluster";

/** A cluster that answers, or the reason why there is none. */
export interface FoundCluster {
  readonly checks: readonly Check[];
  /** Absent unless the cluster answers; to be closed. */
  readonly client?: ApiClient;
  /** Who the cluster takes us for. */
  readonly user?: string;
}

/** Finds the cluster, asks for its version, and who we are there. */
export async function findCluster(options: ClusterOptions): Promise<FoundCluster> {
  const { messageOf } = await import("@gen-operator/runtime");
  let client: ApiClient;
  try {
    client = await openCluster(options);
  } catch (error) {
    const message = messageOf(error);
    // Nobody needs a cluster to write an operator.
    const isAbsent = options.kubeconfig === undefined && message.startsWith("no cluster to connect to");
    if (isAbsent) return { checks: [skipped(NAME, "there is no kubeconfig", "name one with --kubeconfig FILE")] };
    return { checks: [{ name: NAME, outcome: "failed", message, advice: "correct the kubeconfig" }] };
  }
  const { server, origin } = client.connection;
  try {
    const version = await readVersion(client);
    const user = await readUser(client);
    const as = user === undefined ? "a user that the API server does not tell" : `user ${JSON.stringify(user)}`;
    const checks = [ok(NAME, `${server} (${origin}) is Kubernetes ${version}, and takes us for ${as}`)];
    return { checks, client, ...(user === undefined ? {} : { user }) };
  } catch (error) {
    await client.close();
    const { user } = options;
    const forbidden =
      user === undefined
        ? "check whose credentials the kubeconfig has"
        : `leave out --as, or ask for the right to impersonate ${user}`;
    const problem = await describeClusterProblem(error, { client, forbidden });
    return { checks: [{ name: NAME, outcome: "failed", ...problem }] };
  }
}

async function readVersion(client: ApiClient): Promise<string> {
  const text = await client.readPath("/version", { signal: AbortSignal.timeout(TIMEOUT_MS) });
  const { gitVersion } = JSON.parse(text ?? "{}") as { gitVersion?: unknown };
  if (typeof gitVersion !== "string") throw new Error("GET /version answers without a version");
  return gitVersion;
}

const REVIEW = clusterKind("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews");

interface SelfSubjectReview extends KubernetesObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

// Kubernetes serves it since 1.28.
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
