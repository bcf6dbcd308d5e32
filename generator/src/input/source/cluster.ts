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

/** The kind of CustomResourceDefinitions. */
export const CUSTOM_RESOURCE_DEFINITION = clusterKind(
  "apiextensions.k8s.io",
  "CustomResourceDefinition",
  "customresourcedefinitions",
);

/** Returns the definition of a built-in kind that has no namespace, in version v1. */
export function clusterKind(group: string, kind: string, plural: string): ResourceDefinition {
  const names = { group, version: "v1", apiVersion: `${group}/v1`, kind, plural };
  return { ...names, scope: "Cluster", hasStatusSubresource: true, isCustom: false, schema: {} };
}
