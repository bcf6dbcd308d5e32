import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import type { Logger } from "../../base/logger.js";
import type { Connection } from "./connection.js";
import { proxyFromEnvironment } from "./proxy.js";
import { TerminalError } from "../../base/errors.js";
import { checkNotEmpty, createRenewedCredentials, readTokenFile } from "./renewed-credentials.js";

/** Where to look for a connection. */
export interface LoadConnectionOptions {
  /** A kubeconfig file; nothing else is looked at if given. */
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly env?: NodeJS.ProcessEnv;
  /**
   * Takes a warning where a token file, a certificate or a plugin cannot be read again, and the credentials before stay in use. Default: nobody
   * is told until the server rejects them.
   * @example logger: createLogger("warn")
   */
  readonly logger?: Logger;
}

/** Finds the connection as controller-runtime does: a stated kubeconfig, `KUBECONFIG`, a pod's service account, `~/.kube/config`; or throws where it looked. A TerminalError says that a stated file does not exist, or has a value that no header may have. */
export async function loadConnection(options: LoadConnectionOptions = {}): Promise<Connection> {
  const { kubeconfig, env = process.env } = options;
  // Loaded only where there is a kubeconfig: in a cluster there is none.
  const fromFiles = async (files: readonly string[]) =>
    (await import("./kubeconfig.js")).readKubeconfig(files, options);
  if (kubeconfig !== undefined) return fromFiles([kubeconfig]);
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length > 0) {
    const files = listed.filter((file) => existsSync(file));
    if (files.length === 0) throw new TerminalError(`KUBECONFIG names ${listed.join(", ")}, which does not exist`);
    return fromFiles(files);
  }
  const inCluster = createInClusterConnection(env, SERVICE_ACCOUNT_FOLDER, options.logger);
  if (inCluster !== undefined) return inCluster;
  const home = join(homedir(), ".kube", "config");
  if (existsSync(home)) return fromFiles([home]);
  if (isInPod(env))
    throw new Error(
      `no cluster to connect to: this is a pod, but its service account has no token: ${join(SERVICE_ACCOUNT_FOLDER, "token")} does not exist; ` +
        "set automountServiceAccountToken: true, or set KUBECONFIG to the path of a kubeconfig file",
    );
  throw new Error(
    `no cluster to connect to: KUBECONFIG is not set, this is not a pod (KUBERNETES_SERVICE_HOST is not set) and ${home} does not exist; ` +
      "set KUBECONFIG to the path of a kubeconfig file",
  );
}

// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Tells whether this process runs in a pod. */
export function isInPod(env: NodeJS.ProcessEnv = process.env): boolean {
  return (env["KUBERNETES_SERVICE_HOST"] ?? "") !== "";
}

/** Creates the connection of a pod's service account; undefined outside of a cluster. */
export function createInClusterConnection(
  env: NodeJS.ProcessEnv = process.env,
  folder: string = SERVICE_ACCOUNT_FOLDER,
  logger?: Logger,
): Connection | undefined {
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "";
  const port = env["KUBERNETES_SERVICE_PORT"] ?? "443";
  const tokenFile = join(folder, "token");
  if (!isInPod(env) || !existsSync(tokenFile)) return undefined;
  const read = () => readTokenFile(tokenFile);
  const namespaceFile = join(folder, "namespace");
  const caFile = join(folder, "ca.crt");
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    server,
    origin: `service account in ${folder}`,
    isInCluster: true,
    ca: checkNotEmpty(caFile, readFileSync(caFile)),
    caFile,
    proxyUrl: proxyFromEnvironment(server, env),
    namespace: existsSync(namespaceFile)
      ? checkNotEmpty(namespaceFile, readFileSync(namespaceFile, "utf8").trim())
      : undefined,
    credentials: createRenewedCredentials({ what: `reading the token file ${tokenFile}`, read, logger }),
  };
}
