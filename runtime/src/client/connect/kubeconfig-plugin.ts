import type { RequestOptions } from "node:https";
import type { Connection, Credentials } from "./connection.js";

// Plugins cache their tokens themselves; asking them once a minute notices an expiry early enough.
const ASK_AGAIN_AFTER_MS = 60_000;

/**
 * Creates the connection of a kubeconfig context whose user needs a plugin: exec, OIDC, a cloud provider, or impersonation.
 *
 * Loads @kubernetes/client-node, which costs some 60 MB, so nothing else does.
 */
export async function createPluginConnection({
  file,
  context,
  connection,
}: {
  file: string;
  context: string;
  connection: Omit<Connection, "credentials">;
}): Promise<Connection> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  config.loadFromFile(file);
  config.setCurrentContext(context);
  let current: Promise<Credentials> | undefined;
  let askedAt = 0;
  return {
    ...connection,
    credentials: ({ isRejected }) => {
      if (current === undefined || isRejected || performance.now() - askedAt > ASK_AGAIN_AFTER_MS) {
        askedAt = performance.now();
        // One plugin run serves all requests that wait for it.
        current = askPlugin(config).catch((error: unknown) => {
          current = undefined;
          throw new Error(`the authentication plugin of ${connection.origin} failed`, { cause: error });
        });
      }
      return current;
    },
  };
}

async function askPlugin(config: {
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}): Promise<Credentials> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const headers = (options.headers ?? {}) as Record<string, string | undefined>;
  const basic = options.auth ? `Basic ${Buffer.from(options.auth).toString("base64")}` : undefined;
  const authorization = headers["Authorization"]?.trim() ?? basic;
  return {
    ...(authorization === undefined ? {} : { authorization }),
    ...(options.cert === undefined ? {} : { cert: options.cert as string | Buffer }),
    ...(options.key === undefined ? {} : { key: options.key as string | Buffer }),
  };
}
