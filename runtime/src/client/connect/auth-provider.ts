import type { RequestOptions } from "node:https";
import type { Connection, Credentials } from "./connection.js";
import { createRenewedCredentials } from "./renewed-credentials.js";

/**
 * Creates credentials from the `auth-provider` of a kubeconfig user: OIDC or a cloud provider.
 *
 * Loads @kubernetes/client-node, which costs some 60 MB, so nothing else does.
 */
export async function createAuthProviderCredentials(user: object, origin: string): Promise<Connection["credentials"]> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  const contexts = [{ name: "context", context: { cluster: "cluster", user: "user" } }];
  const clusters = [{ name: "cluster", cluster: { server: "https://127.0.0.1" } }];
  const users = [{ name: "user", user }];
  config.loadFromString(JSON.stringify({ clusters, users, contexts, "current-context": "context" }));
  // Providers keep their tokens themselves; asking them once a minute notices an expiry early enough.
  return createRenewedCredentials({ what: `the authentication plugin of ${origin}`, read: () => askPlugin(config) });
}

async function askPlugin(config: {
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}): Promise<Credentials> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const headers = (options.headers ?? {}) as Record<string, string | undefined>;
  const { cert, key } = options as Credentials;
  return { authorization: headers["Authorization"]?.trim(), cert, key };
}
